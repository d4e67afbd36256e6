// core/graph_builder.h — GraphBuilder, a graph while it is being recorded.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "reel/core/graph.h"
#include "reel/core/mode.h"

namespace reel {

/// Records the ops applied on this thread while it is the innermost builder of `mode`.
///
/// An eager tensor, or a value of an enclosing builder, that an op reads becomes a capture: an
/// input behind the formal ones, held by reference. Values of builders that do not enclose this one
/// are a TraceError.
class GraphBuilder {
 public:
  /// Encloses: the builder that is active now. Recording starts with a ModeScope on scope().
  /// place: what errors call the recording, as in: the body of scan "encoder".
  GraphBuilder(std::string name, std::string place);
  explicit GraphBuilder(const std::string& name) : GraphBuilder(name, name) {}
  ThreadMode scope() { return {this, nullptr, nullptr}; }

  Tensor add_input(const TensorType& type);
  Tensors record(const Op& op, const AttrsRef& attrs, OpInputs inputs);
  /// The value in this graph of a tensor from anywhere: itself, or the capture of it.
  Tensor lift(const Tensor& tensor);
  /// The value number of a tensor of this graph, lifted first.
  ValueId value(const Tensor& tensor);
  /// True if lift takes the tensor: a value of this graph or of one around it, or an eager tensor.
  bool sees(const Tensor& tensor) const;
  /// Returns the value in this graph of a tensor that lift takes, or an empty Tensor if the graph
  /// has no capture of it so far.
  Tensor known(const Tensor& tensor) const;
  /// Returns the tensor outside that a value of this graph stands for, or an empty Tensor if the
  /// value is no capture. Returns a tensor from outside as it is.
  Tensor outside(const Tensor& tensor) const;

  /// The number that a value of this graph is in every run, where it was recorded as one.
  std::optional<std::int64_t> known_integer(const Tensor& tensor) const;

  /// Ends recording. What each capture stands for, in order, is captured().
  Ref<Graph> finish(const Tensors& outputs);
  const Tensors& captured() const { return captured_; }

  /// In the outermost builder of the trace: `symbol` stands for `actual` wherever the traced code
  /// says `actual`.
  void rename(const Dim& actual, const Dim& symbol);
  /// From now on each ragged dim from outside becomes a symbol when traced code mentions it, and a
  /// capture binds the symbol in a run. The graph can then run among finished entries, which show
  /// other dims. Requires the outermost builder of a trace.
  void capture_ragged_dims() { captures_ragged_dims_ = true; }
  /// This is the body of a loop whose entries end one by one: a dim from outside with a length for
  /// each of them becomes a symbol here, because ended entries show another one.
  void set_entry_dims(const Dims& dims) { entry_dims_ = dims; }
  /// What such symbols stand for around the body.
  DimEnv dims_outside() const;
  /// The symbol for a dim, noting that code named it although it is the dim of an argument.
  Dim canonical(const Dim& dim);
  /// Whether traced code named the dim behind this symbol itself instead of taking it from an
  /// argument.
  bool is_guarded(const Dim& symbol) const { return guarded_.count(symbol.node()) != 0; }

  std::uint64_t serial() const { return serial_; }
  std::size_t record_count() const { return graph_->records.size(); }
  GraphBuilder* outer() const { return around_.builder; }
  /// The mode in which the builder was made, around the body, branch or trace.
  const ThreadMode& around() const { return around_; }
  GraphBuilder& root();

 private:
  Dim renamed(const Dim& dim);
  Dim captured_dim(const Dim& dim);
  Dim in_body(const Dim& dim);

  ThreadMode around_;
  std::uint64_t serial_;
  Ref<Graph> graph_;
  Ref<const Recording> recording_;
  Tensors captured_;
  std::vector<ValueId> capture_values_;
  std::unordered_map<std::uint64_t, Tensor> lifted_;  // by block id
  std::unordered_map<const DimNode*, Dim> renames_;
  std::unordered_set<const DimNode*> guarded_;
  bool captures_ragged_dims_ = false;
  Dims entry_dims_;
  std::vector<std::pair<Dim, Dim>> body_dims_;  ///< from outside, and their symbols
};

/// Records fn(inputs of these types) as a graph; captured says what its captures stand for.
/// renames: of the graph that it is a part of, if it is.
struct RecordedGraph {
  Ref<Graph> graph;
  Tensors captured;
};
template <class Fn>
RecordedGraph record_graph(const std::string& name, const std::vector<TensorType>& types, Fn&& fn,
                           const DimRenames& renames = {}) {
  GraphBuilder builder(name, name);
  for (const auto& [actual, symbol] : renames) builder.rename(actual, symbol);
  ModeScope scope(builder.scope());
  Tensors inputs;
  for (const TensorType& type : types) inputs.push_back(builder.add_input(type));
  const Tensors outputs = fn(inputs);
  Ref<Graph> graph = builder.finish(outputs);
  return {std::move(graph), builder.captured()};
}

/// Applies the records of a graph again in the active context: runs it, inlines it into a trace, or
/// puts it on a tape.
///
/// inputs: formal ones and captures. env: what its free symbols stand for; filled with what the run
/// binds. `values`, if given, receives every value of the graph that the context made, by number.
/// apply: does a record in place of bind().
using ApplyRecord = std::function<Tensors(const OpRecord&, OpInputs, AttrsRef)>;
Tensors replay(const Graph& graph, std::span<const Tensor> inputs, DimEnv& env,
               Tensors* values = nullptr, const ApplyRecord* apply = nullptr);

/// A value for one of type `formal` in a graph, where its dims may have been born apart from those
/// that the graph knows by now, in a run that computed once more what others came from: each is the
/// one that is known, if it has that size. Of an op that decides its types, or an element of a
/// list.
Tensor with_known_dims(Tensor value, const TensorType& formal, DimEnv& env);

}  // namespace reel
