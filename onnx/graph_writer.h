// onnx/graph_writer.h — GraphWriter, which writes the records of a graph as nodes of ONNX.
#pragma once

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reel/core/dims/dim_env.h"
#include "reel/core/graph/graph.h"
#include "reel/onnx/model_writer.h"

namespace reel::exported {

/// Writes one graph: the recorded function, a body, a branch, or a condition.
///
/// Nodes go to a list that several writers may share: a condition's records become nodes of the
/// graph around it. A graph in ONNX may read values of the graphs around it, so captures have the
/// names that they have there.
class GraphWriter {
 public:
  /// outer: the writer of the graph around this one, or null. env: dims of the outer graph for the
  /// symbols of this graph. All arguments must outlive this object.
  GraphWriter(ModelWriter& model, std::vector<Node>& nodes, const Graph& graph,
              GraphWriter* outer = nullptr, DimEnv env = {})
      : model_(model), nodes_(nodes), graph_(graph), outer_(outer), env_(std::move(env)) {}
  GraphWriter(const GraphWriter&) = delete;
  GraphWriter& operator=(const GraphWriter&) = delete;

  ModelWriter& model() const { return model_; }
  std::vector<Node>& nodes() const { return nodes_; }
  const Graph& graph() const { return graph_; }
  /// Returns true for the recorded function itself, which is no body, branch or condition.
  bool is_main() const { return !outer_; }

  /// Sets the name of a value of the graph.
  void set(ValueId value, const Name& name);
  /// Returns the name of a value. Throws NotExpressible if it has none.
  const Name& name(ValueId value) const;
  /// Returns the name, or an empty one.
  Name name_or_none(ValueId value) const;
  const TensorType& type(ValueId value) const { return graph_.types[value]; }
  /// Returns the name of a value. Before, writes the records from which it is made, unless its name
  /// is known.
  Name name_after_writing(ValueId value);
  /// Returns true if a record or an output of the graph reads the value.
  bool is_read(ValueId value) const;
  /// Writes all records. Lists those that ONNX cannot express in the model.
  void write_records();

  // ---- Nodes ------------------------------------------------------------------------------------

  /// Adds a node with one output and returns its name.
  Name add(const std::string& op, const Names& inputs, const Attributes& attributes = {});
  /// Adds a node with several outputs.
  Names add(const std::string& op, const Names& inputs, std::size_t outputs,
            const Attributes& attributes = {});
  /// Adds a node that gives a value another name.
  void add_identity(const Name& from, const Name& to);

  // Frequent nodes. Axes and sizes are constants of the model.
  Name cast(const Name& x, DType dtype);
  Name transpose(const Name& x, const std::vector<int>& order);
  Name unsqueeze(const Name& x, const std::vector<int>& axes);
  Name squeeze(const Name& x, const std::vector<int>& axes);
  Name reshape(const Name& x, const Dims& dims);
  Name expand(const Name& x, const Dims& dims);
  Name concat(const Names& parts, int axis);
  /// Returns where(condition, a, b), for booleans too.
  Name where(const Name& condition, const Name& a, const Name& b, DType dtype);
  Name logical_not(const Name& x) { return add("Not", {x}); }
  Name sum(const Name& x, const std::vector<int>& axes);
  Name any(const Name& x, const std::vector<int>& axes);
  /// Returns positions 0, 1, ... along a dim.
  Name range(const Dim& dim, DType dtype);
  /// Returns a value with the dims `from` such that it broadcasts to the dims `to`: named dims are
  /// brought into their order.
  Name aligned(const Name& x, const Dims& from, const Dims& to);
  /// Returns x with `padding` in the padding of its ragged dims.
  Name mask_padding(const Name& x, const TensorType& type, const Name& padding);

  // ---- Sizes ------------------------------------------------------------------------------------

  /// Returns the size of a dim: i64[1]. Throws NotExpressible if no value shows it.
  Name size(const Dim& dim);
  /// Returns a new dim with the size of another, for values that have both axes.
  Dim twin(const Dim& dim);
  /// Returns the sizes of dims: i64[rank].
  Name shape(const Dims& dims);
  /// Returns the lengths of a dim: i32 over its length dims.
  Name lengths(const Dim& dim);
  /// Returns the largest of lengths of one or more entries: i64[1]; 0 without entries, for which
  /// ReduceMax is open.
  Name largest(const Name& lengths);
  /// Returns the mask of a dim: boolean over its length dims and the dim.
  Name mask(const Dim& dim);
  /// Sets the lengths of a dim that a record or an input makes.
  void set_lengths(const Dim& dim, const Name& lengths);

  /// Declares an input or output of a graph with the type of a value.
  imported::Declared declared(const Name& name, const TensorType& type, bool with_names) const;
  /// Declares an input of the model for values of this graph. Throws NotExpressible if a size
  /// belongs to an iteration or branch.
  imported::Declared declared_input(const Name& name, const TensorType& type);

 private:
  void write(const OpRecord& record);
  Dim outermost(const Dim& dim);
  Name size_from_values(const Dim& dim);
  Name computed(const DimExpression& expression, bool is_size);

  ModelWriter& model_;
  std::vector<Node>& nodes_;
  const Graph& graph_;
  GraphWriter* outer_;
  DimEnv env_;
  std::unordered_map<ValueId, Name> names_;
  std::vector<ValueId> named_;  ///< in the order in which they got their names
  std::unordered_map<const DimNode*, Name> sizes_, lengths_, masks_;
  std::vector<std::pair<Dim, Dim>> twins_;  ///< twins of unknown size, and the dims that have it
  mutable std::vector<bool> reads_;         ///< by value; empty until is_read() is called
};

/// Returns the size of a dim, -1 if only a run knows it. A static named dim has a known size.
std::int64_t known_size(const Dim& dim);
/// Returns true for a tensor if all its sizes are known and any is 0. Returns false for the token
/// of a dim: it has no elements, but tells lengths.
bool is_known_empty(const TensorType& type);

}  // namespace reel::exported
