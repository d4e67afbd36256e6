// load_onnx and describe_onnx: parse, check and read a model.

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <limits>

#include "reel/core/base/reason_of.h"
#include "reel/core/base/str.h"
#include "reel/core/runtime/no_memory.h"
#include "reel/frontend/files/file_kind.h"
#include "reel/onnx/check_model.h"
#include "reel/onnx/check_support.h"
#include "reel/onnx/describe.h"
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

/// Calls use(read model) after the checks of ONNX's rules. Errors name the file.
template <class Use>
auto read(const ModelProto& model, const imported::ModelFile& file, const LoadOnnxOptions& options,
          const Use& use) try {
  check(model, file);
  return use(imported::read_model(model, file, options));
} catch (OnnxError& error) {
  if (!error.names_function()) error.add_line(str("in load_onnx of ", file.path));
  throw;
}

OnnxModel model_of(imported::ReadModel read) {
  return OnnxModel::of(std::make_shared<const imported::Program>(std::move(read.program)),
                       std::move(read.parameters));
}

OnnxModel load(const ModelProto& model, const imported::ModelFile& file,
               const LoadOnnxOptions& options) {
  return read(model, file, options, [&](imported::ReadModel read) {
    imported::check_support(read.program, model);
    return model_of(std::move(read));
  });
}

/// Returns "; it looks like text" for a file of a known kind; otherwise "".
std::string kind_text(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::string front(kFileFrontBytes, '\0');
  stream.read(front.data(), static_cast<std::streamsize>(front.size()));
  front.resize(static_cast<std::size_t>(stream.gcount()));
  const std::string_view kind = kind_of_file(front);
  return kind.empty() ? "" : str("; it looks like ", kind);
}

ModelProto parsed(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw IoError(str("load_onnx: cannot open ", path, ": ", reason_of(errno)));
  ModelProto model;
  if (!model.ParseFromIstream(&stream))
    throw OnnxError(str("load_onnx: ", path, " is damaged, or no ONNX model", kind_text(path)));
  return model;
}

imported::ModelFile file_of(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return {path, folder.empty() ? "." : folder.string()};
}

}  // namespace

OnnxModel load_onnx(const std::string& path, const LoadOnnxOptions& options) {
  return as_memory_error("load_onnx", [&] { return load(parsed(path), file_of(path), options); });
}

OnnxDescription describe_onnx(const std::string& path) {
  return as_memory_error("describe_onnx", [&] {
    const ModelProto model = parsed(path);
    return read(model, file_of(path), {}, [&](imported::ReadModel read) {
      std::vector<std::string> lines = imported::find_unsupported(read.program, model);
      OnnxDescription result = describe(model_of(std::move(read)));
      result.without_rule = std::move(lines);
      return result;
    });
  });
}

OnnxModel load_onnx_bytes(std::string_view bytes, const LoadOnnxOptions& options) {
  return as_memory_error("load_onnx", [&] {
    ModelProto model;
    if (bytes.size() > std::numeric_limits<int>::max() ||
        !model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
      throw OnnxError("load_onnx: the bytes are damaged, or no ONNX model");
    return load(model, {"the data", ""}, options);
  });
}

}  // namespace reel
