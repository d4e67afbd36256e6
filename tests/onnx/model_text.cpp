#include "reel/tests/onnx/model_text.h"

#include <set>
#include <stdexcept>

#include "reel/core/base/str.h"
#include "reel/onnx/proto.h"
// Needs the macros of onnx/proto.h.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <onnx/defs/parser.h>
#pragma GCC diagnostic pop

namespace reel {

namespace {

/// Removes `seq(` and `)` around types, and returns the names of these values.
std::set<std::string> take_sequences(std::string& text) {
  std::set<std::string> names;
  for (std::size_t at = text.find("seq("); at != std::string::npos; at = text.find("seq(", at)) {
    const std::size_t close = text.find(')', at), name = close + 2;
    names.insert(text.substr(name, text.find_first_of(",) \n", name) - name));
    text.erase(close, 1);
    text.erase(at, 4);
  }
  return names;
}

/// Makes the types of these values sequences.
void make_sequences(::onnx::GraphProto& graph, const std::set<std::string>& names) {
  for (auto* infos : {graph.mutable_input(), graph.mutable_output()})
    for (auto& info : *infos) {
      if (!names.count(info.name())) continue;
      const ::onnx::TypeProto element = info.type();
      *info.mutable_type()->mutable_sequence_type()->mutable_elem_type() = element;
    }
  for (auto& node : *graph.mutable_node())
    for (auto& attribute : *node.mutable_attribute())
      if (attribute.has_g()) make_sequences(*attribute.mutable_g(), names);
}

}  // namespace

std::string model_bytes(const std::string& text, int version) {
  const bool has_trees = text.find("ai.onnx.ml.") != std::string::npos;
  std::string whole = str("<ir_version: 8, opset_import: [\"\" : ", version,
                          ", \"ai.onnx.preview.training\" : 1, \"local\" : 1",
                          has_trees ? ", \"ai.onnx.ml\" : 5" : "", "]>\n", text);
  const std::set<std::string> sequences = take_sequences(whole);
  ::onnx::ModelProto model;
  const auto status = ::onnx::OnnxParser::Parse(model, whole.c_str());
  if (!status.IsOK()) throw std::runtime_error(status.ErrorMessage());
  make_sequences(*model.mutable_graph(), sequences);
  return model.SerializeAsString();
}

OnnxModel model_of(const std::string& text, int version) {
  return load_onnx_bytes(model_bytes(text, version));
}

}  // namespace reel
