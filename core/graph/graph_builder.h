// core/graph/graph_builder.h — GraphBuilder, which records a graph.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "reel/core/graph/graph.h"
#include "reel/core/types/mode.h"

namespace reel {

/// Records the ops applied on this thread while it is the innermost builder of `mode`.
///
/// If an op reads an eager tensor, or a value of an enclosing builder, the tensor becomes a
/// capture: an input behind the formal ones, held by reference. Throws TraceError for a value of a
/// builder that does not enclose this one. Not thread-safe.
class GraphBuilder {
 public:
  /// Makes a builder enclosed by the active one. A ModeScope on scope() starts the recording.
  /// place: the name of the recording in errors, for instance: the body of scan "encoder".
  GraphBuilder(std::string name, std::string place);
  explicit GraphBuilder(const std::string& name) : GraphBuilder(name, name) {}
  ThreadMode scope() { return {this, nullptr, nullptr}; }

  /// Adds a formal input.
  Tensor add_input(const TensorType& type);
  /// Records an op. Throws as its type rule and lift() do.
  Tensors record(const Op& op, const AttrsRef& attrs, OpInputs inputs);
  /// Appends the records of a part that a builder inside of this one recorded, and tells the active
  /// tapes of them. inputs: the tensors behind the inputs of the part. Returns the values that its
  /// outputs become. Dims that the part made stay the same.
  Tensors inline_part(const Graph& part, const Tensors& inputs);
  /// Returns the value of this graph that stands for a tensor: the tensor itself, or its capture.
  /// Throws ArgumentError for an empty Tensor, TraceError if sees() is false.
  Tensor lift(const Tensor& tensor);
  /// Returns the value number of a tensor, after lift().
  ValueId value(const Tensor& tensor);
  /// Returns true if lift accepts the tensor: a value of this graph or of an enclosing one, or an
  /// eager tensor.
  bool sees(const Tensor& tensor) const;
  /// Returns the value of this graph for a tensor that lift accepts, or an empty Tensor if the
  /// graph has no capture of it yet.
  Tensor known(const Tensor& tensor) const;
  /// Returns the tensor from outside for which a value of this graph stands, or an empty Tensor if
  /// the value is no capture. Returns a tensor from outside unchanged.
  Tensor outside(const Tensor& tensor) const;
  /// Returns the dim from outside of the trace for which a dim stands, also for one that the trace
  /// computed; nullopt if it belongs to the trace alone.
  std::optional<Dim> outside(const Dim& dim) const;

  /// Returns the integer that a value of this graph is in every run; nothing if it is not known.
  std::optional<std::int64_t> known_integer(const Tensor& tensor) const;

  /// Ends recording and returns the graph. captured() lists the tensors behind its captures, in
  /// order. Throws as lift() for outputs.
  Ref<Graph> finish(const Tensors& outputs);
  const Tensors& captured() const { return captured_; }

  /// Makes `symbol` stand for `actual` wherever the traced code mentions `actual`. Requires the
  /// outermost builder of a trace.
  void rename(const Dim& actual, const Dim& symbol);
  /// Replaces, from now on, each ragged dim from outside by a symbol when traced code mentions it.
  /// A capture binds the symbol in a run. The graph can then run with finished entries, for which
  /// other dims stand in. Requires the outermost builder of a trace.
  void capture_ragged_dims() { captures_ragged_dims_ = true; }
  /// Declares the dims of entries that finish one by one in this loop body. Dims from outside with
  /// a length per entry become symbols here, because finished entries see other dims.
  void set_entry_dims(const Dims& dims) { entry_dims_ = dims; }
  /// Returns true in the body of a loop with entries that finish one by one, at any depth.
  bool is_in_entries() const {
    return !entry_dims_.empty() || (outer() && outer()->is_in_entries());
  }
  /// Returns the dims outside the body for these symbols.
  DimEnv dims_outside() const;
  /// Returns the symbol of a dim, and marks it as named by the code although it is an argument's
  /// dim.
  Dim canonical(const Dim& dim);
  /// Returns the dim of the trace for a dim that its arithmetic made: `made` itself, or the one
  /// that stands for an equal dim from outside already. An argument may have the dim time + 1 and
  /// the traced code name time: then time + 1 is the argument's dim. Marks the symbols of both as
  /// canonical() does.
  Dim unified(const Dim& made);
  /// Returns true if a symbol of this trace, or of this body, stands for a dim from outside. Marks
  /// the symbol as canonical() does.
  bool stands_for(const Dim& symbol, const Dim& actual);
  /// Returns true if a symbol stands for an argument's dim alone that is computed outside of the
  /// trace: the symbol does not tell from which dims.
  bool hides_operands() const { return !root().hidden_operands_.empty(); }
  /// Returns true if the code that this graph records made the dim, which must not be computed.
  bool has_made(const Dim& dim) const;
  /// Returns true if traced code named the dim behind this symbol itself, instead of taking it from
  /// an argument.
  bool is_guarded(const Dim& symbol) const { return guarded_.count(symbol.node()) != 0; }

  std::uint64_t serial() const { return serial_; }
  std::size_t record_count() const { return graph_->records.size(); }
  GraphBuilder* outer() const { return around_.builder; }
  /// Returns the mode in which the builder was made, outside the body, branch or trace.
  const ThreadMode& around() const { return around_; }
  GraphBuilder& root();
  const GraphBuilder& root() const;

 private:
  Dim renamed(const Dim& dim);
  Dim captured_dim(const Dim& dim);
  bool is_related(const Dim& dim) const;
  void guard(const Dim& symbol);
  Dim in_body(const Dim& dim);

  ThreadMode around_;
  std::uint64_t serial_;
  std::uint64_t first_dim_;  ///< Dim::serial() of the first dim that is made meanwhile
  Ref<Graph> graph_;
  Ref<const Recording> recording_;
  Tensors captured_;
  std::vector<ValueId> capture_values_;
  std::unordered_map<std::uint64_t, Tensor> lifted_;      // by block id
  std::unordered_map<const DimNode*, Dim> renames_;       ///< by dim from outside
  std::unordered_map<const DimNode*, Dim> dims_outside_;  ///< by symbol: its dim from outside
  /// The dims from which dims of arguments are computed, where a symbol stands for the result
  /// alone. Dims computed from them in the trace can equal each other in more ways than their
  /// symbols tell: see unified().
  std::unordered_set<const DimNode*> hidden_operands_;
  std::unordered_set<const DimNode*> guarded_;
  bool captures_ragged_dims_ = false;
  Dims entry_dims_;
  std::vector<std::pair<Dim, Dim>> body_dims_;  ///< dims from outside, and their symbols
};

/// Result of record_graph: the graph of fn(inputs of these types), and the tensors behind its
/// captures. renames: of the graph that it is a part of; empty if none.
struct RecordedGraph {
  Ref<Graph> graph;
  Tensors captured;
};
template <class Fn>
RecordedGraph record_graph(const std::string& name, const std::vector<TensorType>& types, Fn&& fn,
                           const DimChanges& renames = {}) {
  GraphBuilder builder(name, name);
  for (const auto& [actual, symbol] : renames) builder.rename(actual, symbol);
  ModeScope scope(builder.scope());
  Tensors inputs;
  for (const TensorType& type : types) inputs.push_back(builder.add_input(type));
  const Tensors outputs = fn(inputs);
  Ref<Graph> graph = builder.finish(outputs);
  return {std::move(graph), builder.captured()};
}

}  // namespace reel
