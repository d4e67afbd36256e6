#include "reel/onnx/borders.h"

#include <algorithm>

namespace reel::exported {

bool is_token(const TensorType& type) {
  if (type.dtype() != boolean || type.rank() != 2 || type.dims()[0].raw_size() != 0) return false;
  const Dim &none = type.dims()[0], &dim = type.dims()[1];
  return none.is_named() ? none.name() == "none" : !dim.has_size();
}

Name leaving(GraphWriter& from, ValueId value) {
  const TensorType& type = from.type(value);
  if (!is_token(type) || type.is_list()) return from.name(value);
  return from.lengths(type.dims()[1]);
}

TensorType leaving_type(const TensorType& type) {
  if (!is_token(type)) return type;
  const TensorType lengths(i32, type.dims()[1].length_dims());
  return type.is_list() ? lengths.as_list() : lengths;
}

void enter(GraphWriter& to, ValueId value, const Name& name) {
  const TensorType& type = to.type(value);
  if (!is_token(type) || type.is_list()) return to.set(value, name);
  to.set(value, "");
  to.set_lengths(type.dims()[1], name);
}

InnerGraph::InnerGraph(ModelWriter& model, const std::string& name)
    : model_(model), graph_(std::make_shared<imported::Graph>()) {
  graph_->name = model.unique(name);
}

Name InnerGraph::add_input(const GraphWriter& writer, const std::string& wanted,
                           const TensorType& type) {
  const Name name = model_.unique(wanted);
  graph_->inputs.push_back(writer.declared(name, type, false));
  return name;
}

void InnerGraph::add_output(GraphWriter& writer, const Name& value, const TensorType& type) {
  const auto makes = [&](const Node& node) {
    return std::find(node.outputs.begin(), node.outputs.end(), value) != node.outputs.end();
  };
  Name name = value;
  // A value of a graph around this one, an input, or a second output needs a node of its own.
  if (!used_.insert(value).second ||
      std::none_of(graph_->nodes.begin(), graph_->nodes.end(), makes)) {
    name = model_.unique("output");
    writer.add_identity(value, name);
  }
  graph_->outputs.push_back(writer.declared(name, type, false));
}

}  // namespace reel::exported
