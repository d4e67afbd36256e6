// Measures models in the format of ONNX: an LSTM that is saved, loaded by Reel and run by
// onnxruntime, and the time to load a large model. With arguments that begin with the name of a
// model's file: a call of these models instead, on one thread, in turns with onnxruntime.
//
//   bench_onnx silero_vad_v5.onnx,input=1x512,state=2x1x128,sr:16000 embedding_model.onnx
//
// Behind a file: sizes of inputs, and the value of all elements of an input. Sizes that neither the
// argument nor the model states are 1; elements are 0.1, integers 1.
//
// onnxruntime has no headers for C++ here, so that node runs it (onnx_bench.js, onnx_models.js).
// The environment variable REEL_ONNXRUNTIME names the folder of its package; without it, its
// figures are left out.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>

#include "harness.h"
#include "reel/onnx.h"
#include "reel/reel.h"

namespace reel::bench {
namespace {

namespace fs = std::filesystem;

constexpr int kSteps = 784, kHidden = 64;

/// A folder for models, which is removed at the end.
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / str("reel_bench_onnx_", ::getpid())) {
    fs::create_directory(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

/// Returns microseconds per step in onnxruntime, by run; empty if it is not there.
std::vector<double> times_in_onnxruntime(const std::string& model, const Folder& folder) {
  const char* const package = std::getenv("REEL_ONNXRUNTIME");
  if (!package) return {};
  const std::string times = folder.file("times.txt");
  if (std::system(str("NODE_PATH='", package, "' node '", REEL_BENCH_ROOT, "bench/onnx_bench.js' '",
                      model, "' ", kSteps, " > '", times, "'")
                      .c_str()))
    return {};
  std::ifstream in(times);
  std::vector<double> result;
  for (double time; in >> time;) result.push_back(time);
  return result;
}

/// Compares the function itself with its saved model.
void compare_lstm(Group& group, const Folder& folder, bool recurrent_nodes) {
  const std::string name = str("lstm T=", kSteps, " B=1 I=1 H=", kHidden, " forward, saved as a ",
                               recurrent_nodes ? "node" : "Loop");
  if (!group.wants(name)) return;
  const Dim batch("batch", 1), in("in", 1), hidden("hidden", kHidden), time("time", kSteps);
  manual_seed(1);
  const auto cell = LstmCell::init(in, hidden);
  const Tensor xs = random_normal({batch, time, in}), plain = reshape(xs, {1, kSteps, 1});
  const auto f = [](const LstmCell& cell, const Tensor& xs) {
    return recur(cell, xs, xs.dim("time")).outputs;
  };
  const std::string file = folder.file("lstm.onnx");
  save_onnx(file, f, std::tuple{cell, xs},
            {.arguments = {"", "xs"},
             .results = {"ys"},
             .parameters = {0},
             .recurrent_nodes = recurrent_nodes});
  const auto traced = jit(f);
  const OnnxModel model = load_onnx(file);
  const auto loaded = jit([&](const Tensor& xs) { return model({{"xs", xs}}).at("ys"); });
  group.compare(name, {"us_per_step", "us", 1e6 / kSteps},
                {{"reel", [&] { traced(cell, xs); }}, {"loaded", [&] { loaded(plain); }}},
                Clock::processor);
  const std::vector<double> others = times_in_onnxruntime(file, folder);
  if (!others.empty()) group.report(name, "us_per_step_onnxruntime", "us", others);
}

void time_loading(Group& group, const Folder& folder) {
  const std::string name = "load a model of 100 MB";
  if (!group.wants(name)) return;
  std::vector<Tensor> layers;
  for (int i = 0; i < 25; ++i) layers.push_back(random_normal({1000, 1000}));
  const auto f = [](const std::vector<Tensor>& layers, const Tensor& x) {
    Tensor y = x;
    for (const Tensor& layer : layers) y = tanh(matmul(y, layer));
    return y;
  };
  const std::string file = folder.file("large.onnx");
  save_onnx(file, f, std::tuple{layers, ones({1, 1000})},
            {.arguments = {"layers", "x"}, .parameters = {0}});
  group.compare(name, milliseconds(), {{"reel", [&] { load_onnx(file); }}}, Clock::wall);
}

// ---- Models in files ----------------------------------------------------------------------------

struct InputOfFile {
  std::string name, type;  // as ONNX calls it
  std::vector<std::int64_t> sizes;
  double value = 0.1;
};

/// A model, and its inputs as an argument of the program states them.
struct ModelFile {
  std::string path;
  std::vector<InputOfFile> inputs;
};

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> result;
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find(at, begin)) != std::string::npos; begin = end + 1)
    result.push_back(text.substr(begin, end - begin));
  result.push_back(text.substr(begin));
  return result;
}

/// Returns the inputs as the model declares them: float[batch,3].
std::vector<InputOfFile> declared_inputs(const OnnxModel& model) {
  std::vector<InputOfFile> inputs;
  for (const auto& [name, type] : describe(model).inputs) {
    const std::size_t bracket = type.find('[');
    InputOfFile input{name, type.substr(0, bracket), {}};
    if (input.type != "float" && input.type != "double") input.value = 1;
    if (bracket != std::string::npos && type[bracket + 1] != ']')
      for (const std::string& size :
           split(type.substr(bracket + 1, type.size() - bracket - 2), ','))
        input.sizes.push_back(
            size.find_first_not_of("0123456789") == std::string::npos ? std::stoll(size) : 1);
    inputs.push_back(std::move(input));
  }
  return inputs;
}

/// Reads FILE,INPUT=SIZES,INPUT:VALUE.
ModelFile model_file(const std::string& argument, const OnnxModel& model) {
  const std::vector<std::string> words = split(argument, ',');
  ModelFile result{words[0], declared_inputs(model)};
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::size_t sign = words[i].find_last_of("=:");
    for (InputOfFile& input : result.inputs) {
      if (sign == std::string::npos || words[i].substr(0, sign) != input.name) continue;
      const std::string value = words[i].substr(sign + 1);
      if (words[i][sign] == ':') {
        input.value = std::stod(value);
        continue;
      }
      input.sizes.clear();
      for (const std::string& size : split(value, 'x')) input.sizes.push_back(std::stoll(size));
    }
  }
  return result;
}

Tensor tensor_of(const InputOfFile& input) {
  Dims dims;
  for (const std::int64_t size : input.sizes) dims.emplace_back(size);
  const DType type = input.type == "float"    ? f32
                     : input.type == "double" ? f64
                     : input.type == "int64"  ? i64
                     : input.type == "bool"   ? boolean
                                              : i32;
  return cast(full(dims, input.value, f64), type);
}

/// Calls of a model by onnxruntime, in a process of node that waits between them.
class OnnxruntimeCalls {
 public:
  /// Starts node if the package is there.
  OnnxruntimeCalls(const ModelFile& model, const Folder& folder) {
    const char* const package = std::getenv("REEL_ONNXRUNTIME");
    const std::string times = folder.file("times");
    if (!package || ::mkfifo(times.c_str(), 0600)) return;
    std::string command = str("NODE_PATH='", package, "' node '", REEL_BENCH_ROOT,
                              "bench/onnx_models.js' '", model.path, "'");
    for (const InputOfFile& input : model.inputs)
      command += str(" '", input.name, "' ", input.type, ' ',
                     input.sizes.empty() ? "scalar" : join(input.sizes, "x"), ' ', input.value);
    node_ = ::popen(str(command, " > '", times, "'").c_str(), "w");
    times_.open(times);
    fs::remove(times);
  }
  ~OnnxruntimeCalls() {
    if (node_) ::pclose(node_);  // its input ends
  }
  OnnxruntimeCalls(const OnnxruntimeCalls&) = delete;
  OnnxruntimeCalls& operator=(const OnnxruntimeCalls&) = delete;

  /// Returns milliseconds of a call: the mean of `calls`, after some that do not count. None if
  /// onnxruntime is not there, or refuses the model.
  std::optional<double> milliseconds(int calls) {
    double result = 0;
    if (!node_ || std::fprintf(node_, "%d\n", calls) < 0 || std::fflush(node_) != 0 ||
        !(times_ >> result))
      return std::nullopt;
    return result;
  }

 private:
  FILE* node_ = nullptr;
  std::ifstream times_;
};

double mean_milliseconds(const std::function<void()>& run, int calls) {
  const auto all = [&](int times) {
    for (int i = 0; i < times; ++i) run();
  };
  all(1 + calls / 4);  // not counted
  return 1e3 * seconds_of([&] { all(calls); }, Clock::processor) / calls;
}

/// Times calls of a loaded and traced model. The trace captures the model, as usual for models that
/// are only run. Both systems count seconds of processors, so that other programs do not count.
void time_model(Group& group, const Folder& folder, const std::string& argument, double seconds) {
  constexpr int kMinTurns = 9;
  constexpr double kTurnMilliseconds = 20;
  const std::string path = split(argument, ',')[0], name = fs::path(path).filename().string();
  if (!group.wants(name)) return;
  const OnnxModel model = load_onnx(path);
  const ModelFile file = model_file(argument, model);
  std::map<std::string, Tensor> floats, others;
  for (const InputOfFile& input : file.inputs)
    (input.type == "float" ? floats : others)[input.name] = tensor_of(input);
  const auto traced = jit([&](const std::map<std::string, Tensor>& inputs) {
    std::map<std::string, Tensor> all = inputs;
    all.insert(others.begin(), others.end());  // captured: rates and sizes select branches
    return model(all);
  });
  const auto run = [&] { traced(floats); };
  run();  // traces
  const double once = mean_milliseconds(run, 3);
  const int calls = std::max(1, static_cast<int>(std::ceil(kTurnMilliseconds / once))),
            turns = std::max(kMinTurns, static_cast<int>(1e3 * seconds / (2 * once * calls)));
  OnnxruntimeCalls onnxruntime(file, folder);
  std::vector<double> times, theirs;
  for (int turn = 0; turn < turns; ++turn) {
    times.push_back(mean_milliseconds(run, calls));
    if (const std::optional<double> time = onnxruntime.milliseconds(calls)) theirs.push_back(*time);
  }
  group.report(name, "ms", "ms", times);
  if (theirs.size() != times.size()) return;
  group.report(name, "ms_onnxruntime", "ms", theirs);
  group.report_ratio(name, "ratio_to_onnxruntime", times, theirs);
}

int main_of(int argc, char** argv) {
  std::vector<std::string> models;
  Group group("onnx", argc, argv, &models);
  const Folder folder;
  if (!models.empty()) {
    set_threads(1);
    std::signal(SIGPIPE, SIG_IGN);  // node may refuse a model
    for (const std::string& model : models) time_model(group, folder, model, group.seconds());
    return group.finish();
  }
  compare_lstm(group, folder, true);
  compare_lstm(group, folder, false);
  time_loading(group, folder);
  return group.finish();
}

}  // namespace
}  // namespace reel::bench

int main(int argc, char** argv) { return reel::bench::main_of(argc, argv); }
