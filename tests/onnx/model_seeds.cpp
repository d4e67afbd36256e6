#include "reel/tests/onnx/model_seeds.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "reel/onnx/proto.h"

namespace reel {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kLargestSeed = 1 << 14;  // bytes of a model or input

template <class Proto>
bool read(const fs::path& path, Proto& proto) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  std::ifstream in(path, std::ios::binary);
  return !error && size <= kLargestSeed && in && proto.ParseFromIstream(&in);
}

void add_inputs(::onnx::ModelProto& model, const fs::path& folder) {
  auto& graph = *model.mutable_graph();
  for (int i = 0; i < graph.input_size(); ++i) {
    ::onnx::TensorProto tensor;
    const fs::path path = folder / ("input_" + std::to_string(i) + ".pb");
    if (!graph.input(i).type().has_tensor_type() || !read(path, tensor)) continue;
    tensor.set_name(graph.input(i).name());
    *graph.add_initializer() = std::move(tensor);
  }
}

}  // namespace

std::vector<std::string> model_seeds(const std::string& data) {
  std::vector<std::string> seeds;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(data, error)) {
    ::onnx::ModelProto model;
    if (entry.path().filename() != "model.onnx" || !read(entry.path(), model)) continue;
    add_inputs(model, entry.path().parent_path() / "test_data_set_0");
    seeds.push_back(model.SerializeAsString());
  }
  std::sort(seeds.begin(), seeds.end());
  return seeds;
}

}  // namespace reel
