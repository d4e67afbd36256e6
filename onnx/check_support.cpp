#include "reel/onnx/check_support.h"

#include <set>

#include "reel/core/base/str.h"
#include "reel/onnx/onnx_error.h"
#include "reel/onnx/registry.h"

namespace reel::imported {
namespace {

constexpr std::size_t kMaxListed = 20;  // nodes of one op, in a message

/// Ops or types, and the nodes that have them.
using Missing = std::map<std::string, std::vector<std::string>>;

/// Returns the element type of a tensor, or of the elements of a sequence or optional.
ElementType element_type(const ::onnx::TypeProto& type) {
  if (type.has_sequence_type()) return element_type(type.sequence_type().elem_type());
  if (type.has_optional_type()) return element_type(type.optional_type().elem_type());
  if (type.has_tensor_type()) return static_cast<ElementType>(type.tensor_type().elem_type());
  return ElementType::undefined;
}

/// Returns true for attributes that have the number of an element type.
bool states_type(const std::string& attribute) {
  return attribute == "to" || attribute == "dtype" || attribute == "output_datatype";
}

// ONNX's own inference of types is not used: for wrong ranks, its version 1.12 reads beyond arrays.
void find_types(const ::onnx::GraphProto& graph, Missing& missing) {
  std::map<std::string, ElementType> types;
  const auto note = [&](const ::onnx::ValueInfoProto& info) {
    if (!info.has_type()) return;
    const ElementType type = element_type(info.type());
    // Optional and untyped outputs remain unknown.
    if (type != ElementType::undefined && !dtype_of(type)) types[info.name()] = type;
    if (info.type().has_map_type() || info.type().has_sparse_tensor_type())
      missing["maps and sparse tensors"].push_back(info.name());
  };
  for (const auto& info : graph.input()) note(info);
  for (const auto& info : graph.value_info()) note(info);
  for (const auto& info : graph.output()) note(info);
  for (const auto& info : graph.input())
    if (types.count(info.name()))
      missing[str("type ", types[info.name()])].push_back(str("input ", info.name()));
  for (const auto& tensor : graph.initializer()) {
    const auto type = static_cast<ElementType>(tensor.data_type());
    if (!dtype_of(type)) missing[str("type ", type)].push_back(str("initializer ", tensor.name()));
  }
  for (const auto& node : graph.node()) {
    for (const std::string& name : node.output())
      if (types.count(name)) missing[str("type ", types[name])].push_back(str("of ", name));
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) find_types(attribute.g(), missing);
      const bool is_stated = states_type(attribute.name()) && attribute.has_i();
      const auto type = is_stated ? static_cast<ElementType>(attribute.i())
                                  : static_cast<ElementType>(attribute.t().data_type());
      const bool is_listed = node.output_size() && types.count(node.output(0));
      if ((attribute.has_t() || is_stated) && !dtype_of(type) && !is_listed)
        missing[str("type ", type)].push_back(
            str("of ", node.output_size() ? node.output(0) : node.name()));
    }
  }
}

void find_ops(const Graph& graph, Missing& missing) {
  for_each_node(graph, [&](const Node& node) {
    if (node.rule || node.function) return;
    const std::string op = node.domain.empty() ? node.op : str(node.domain, '.', node.op);
    missing[str("op ", op, " of version ", node.version)].push_back(node.name);
  });
}

}  // namespace

std::vector<std::string> find_unsupported(const Program& program, const ::onnx::ModelProto& model) {
  Missing missing;
  find_ops(program.graph, missing);
  find_types(model.graph(), missing);
  std::vector<std::string> lines;
  for (auto& [what, nodes] : missing) {
    const std::size_t count = nodes.size();
    if (count > kMaxListed) nodes.resize(kMaxListed);
    lines.push_back(str(what, ": ", count == 1 ? "node " : "nodes ", join(nodes),
                        count > kMaxListed ? str(", ... ", count, " nodes") : ""));
  }
  return lines;
}

void check_support(const Program& program, const ::onnx::ModelProto& model) {
  const std::vector<std::string> lines = find_unsupported(program, model);
  if (lines.empty()) return;
  std::string text = "the model has ops or types without a rule in Reel:";
  for (const std::string& line : lines) text += "\n  " + line;
  throw OnnxError(text);
}

}  // namespace reel::imported
