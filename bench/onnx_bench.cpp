// Measures models in the format of ONNX: an LSTM that is saved, loaded by Reel and run by
// onnxruntime, and the time to load a large model. With arguments that begin with the name of a
// model's file: a call of these models instead, on one thread.
//
//   bench_onnx silero_vad_v5.onnx,input=1x512,state=2x1x128,sr:16000 embedding_model.onnx
//
// Behind a file: sizes of inputs, and the value of all elements of an input. Sizes that neither the
// argument nor the model states are 1; elements are 0.1, integers 1.
//
// onnxruntime has no headers for C++ here, so that node runs it (onnx_bench.js), in turns of its
// own. The environment variable REEL_ONNXRUNTIME names the folder of its package; without it, its
// figures are left out.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

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

/// Returns milliseconds per call in onnxruntime, by run; empty if it is not there.
std::vector<double> milliseconds_in_onnxruntime(const ModelFile& model, const Folder& folder) {
  const char* const package = std::getenv("REEL_ONNXRUNTIME");
  if (!package) return {};
  const std::string times = folder.file("times.txt");
  std::string command = str("NODE_PATH='", package, "' node '", REEL_BENCH_ROOT,
                            "bench/onnx_models.js' '", model.path, "'");
  for (const InputOfFile& input : model.inputs)
    command += str(" '", input.name, "' ", input.type, ' ',
                   input.sizes.empty() ? "scalar" : join(input.sizes, "x"), ' ', input.value);
  if (std::system(str(command, " > '", times, "'").c_str())) return {};
  std::ifstream in(times);
  std::vector<double> result;
  for (double time; in >> time;) result.push_back(time);
  return result;
}

/// Times calls of a loaded and traced model. It is captured, as its owner would do who only runs
/// it.
void time_model(Group& group, const Folder& folder, const std::string& argument) {
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
  group.compare(name, milliseconds(), {{"reel", [&] { traced(floats); }}}, Clock::wall);
  const std::vector<double> times = milliseconds_in_onnxruntime(file, folder);
  if (!times.empty()) group.report(name, "ms_onnxruntime", "ms", times);
}

int main_of(int argc, char** argv) {
  std::vector<std::string> models;
  std::vector<char*> options;
  for (int i = 0; i < argc; ++i) {
    const bool is_model =
        i > 0 && std::string(split(argv[i], ',')[0]).ends_with(".onnx") && argv[i][0] != '-';
    if (is_model)
      models.emplace_back(argv[i]);
    else
      options.push_back(argv[i]);
  }
  options.push_back(nullptr);
  Group group("onnx", static_cast<int>(options.size()) - 1, options.data());
  const Folder folder;
  for (const std::string& model : models) time_model(group, folder, model);
  if (!models.empty()) return group.finish();
  compare_lstm(group, folder, true);
  compare_lstm(group, folder, false);
  time_loading(group, folder);
  return group.finish();
}

}  // namespace
}  // namespace reel::bench

int main(int argc, char** argv) { return reel::bench::main_of(argc, argv); }
