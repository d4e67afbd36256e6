// onnx/borders.h — values that cross the border of a graph: inputs and outputs of bodies
// and branches.
//
// A token, which carries a dim, has no elements: the lengths of its dim cross the border instead. A
// list crosses as a tensor with its elements along the first axis.
#pragma once

#include <memory>
#include <set>

#include "reel/onnx/graph_writer.h"

namespace reel::exported {

/// True for the type of a token, and of a list of tokens.
bool is_token(const TensorType& type);

/// Returns the name under which a value leaves its graph.
Name leaving(GraphWriter& from, ValueId value);
/// Returns the type in ONNX of a value that leaves a graph.
TensorType leaving_type(const TensorType& type);
/// Makes `name` stand for a value that enters a graph.
void enter(GraphWriter& to, ValueId value, const Name& name);

/// A graph of ONNX inside a node: its inputs and outputs, in order.
class InnerGraph {
 public:
  InnerGraph(ModelWriter& model, const std::string& name);

  std::vector<Node>& nodes() { return graph_->nodes; }
  /// Adds an input and returns its name.
  Name add_input(const GraphWriter& writer, const std::string& wanted, const TensorType& type);
  /// Adds an output: a value of this graph or of one around it.
  void add_output(GraphWriter& writer, const Name& value, const TensorType& type);
  std::shared_ptr<const imported::Graph> graph() const { return graph_; }

 private:
  ModelWriter& model_;
  std::shared_ptr<imported::Graph> graph_;
  std::set<Name> used_;  ///< outputs so far
};

}  // namespace reel::exported
