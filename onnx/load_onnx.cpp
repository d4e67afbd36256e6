// load_onnx: parses, checks and reads a model.

#include <filesystem>
#include <fstream>
#include <limits>

#include "reel/core/base/str.h"
#include "reel/core/runtime/no_memory.h"
#include "reel/onnx/check_model.h"
#include "reel/onnx/check_support.h"
#include "reel/onnx/model.h"
#include "reel/onnx/proto.h"
#include "reel/onnx/read_graph.h"

namespace reel {
namespace {

using ::onnx::ModelProto;

bool has_other_files(const ::onnx::GraphProto& graph) {
  const auto is_elsewhere = [](const ::onnx::TensorProto& tensor) {
    return tensor.data_location() == ::onnx::TensorProto::EXTERNAL;
  };
  for (const auto& tensor : graph.initializer())
    if (is_elsewhere(tensor)) return true;
  for (const auto& node : graph.node())
    for (const auto& attribute : node.attribute())
      if (is_elsewhere(attribute.t()) || has_other_files(attribute.g())) return true;
  return false;
}

void check(const ModelProto& model, const imported::ModelFile& file) {
  if (!model.has_graph())
    throw OnnxError(str("load_onnx: ", file.path, " is no ONNX model: it has no graph"));
  try {
    imported::check_model(model);
    if (!imported::is_known_to_library(model)) return;
    const bool is_in_files = !file.folder.empty() && has_other_files(model.graph());
    imported::check_by_library(model, is_in_files ? file.path : "");
  } catch (const OnnxError& error) {
    throw OnnxError(str("load_onnx: ", file.path, " breaks a rule of ONNX: ", error.message()));
  } catch (const std::exception& error) {
    throw OnnxError(str("load_onnx: ", file.path, " breaks a rule of ONNX: ", error.what()));
  }
}

OnnxModel read(const ModelProto& model, const imported::ModelFile& file,
               const LoadOnnxOptions& options) try {
  check(model, file);
  imported::ReadModel read = imported::read_model(model, file, options);
  imported::check_support(read.program, model);
  return OnnxModel::of(std::make_shared<const imported::Program>(std::move(read.program)),
                       std::move(read.parameters));
} catch (OnnxError& error) {
  if (!error.names_function()) error.add_line(str("in load_onnx of ", file.path));
  throw;
}

}  // namespace

OnnxModel load_onnx(const std::string& path, const LoadOnnxOptions& options) {
  return as_memory_error("load_onnx", [&] {
    std::ifstream stream(path, std::ios::binary);
    if (!stream) throw IoError(str("load_onnx: ", path, " cannot be opened"));
    ModelProto model;
    if (!model.ParseFromIstream(&stream))
      throw OnnxError(str("load_onnx: ", path, " is damaged, or no ONNX model"));
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    return read(model, {path, folder.empty() ? "." : folder.string()}, options);
  });
}

OnnxModel load_onnx_bytes(std::string_view bytes, const LoadOnnxOptions& options) {
  return as_memory_error("load_onnx", [&] {
    ModelProto model;
    if (bytes.size() > std::numeric_limits<int>::max() ||
        !model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
      throw OnnxError("load_onnx: the bytes are damaged, or no ONNX model");
    return read(model, {"the data", ""}, options);
  });
}

}  // namespace reel
