// Measures models in the format of ONNX: an LSTM that is saved, loaded by Reel and run by
// onnxruntime, and the time to load a large model.
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

int main_of(int argc, char** argv) {
  Group group("onnx", argc, argv);
  const Folder folder;
  compare_lstm(group, folder, true);
  compare_lstm(group, folder, false);
  time_loading(group, folder);
  return group.finish();
}

}  // namespace
}  // namespace reel::bench

int main(int argc, char** argv) { return reel::bench::main_of(argc, argv); }
