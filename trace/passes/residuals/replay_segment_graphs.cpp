#include "reel/trace/passes/residuals/replay_segment_graphs.h"

#include <span>

#include "reel/core/graph/passes/without_effects.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/types/dim_symbol.h"
#include "reel/trace/executors/loop/chunks.h"
#include "reel/trace/passes/support/append_typed.h"

namespace reel {
namespace {

/// Returns the types of the carries before any iteration. A dim that iterations change is a symbol,
/// all other dims come from the loop's inputs.
std::vector<TensorType> types_of_carries(const LoopAttrs& loop,
                                         const std::vector<TensorType>& inputs) {
  const Graph& body = *loop.body.graph;
  const auto given = operands_of(loop, inputs).carries;
  const std::vector<std::uint8_t> is_changing = carries_with_changing_dims(loop);
  const Dims changing = changing_dims(loop);
  DimEnv around = body_env(loop, inputs), names = DimEnv::renaming();
  for (const ValueId v : body.inputs)
    for_each_symbol(body.types[v], [&](const Dim& dim) {
      if (!contains(changing, dim) && around.knows(dim)) names.bind(dim, around.resolve(dim));
    });
  for (const Dim& dim : changing) {  // dims that lengths of others run over come first
    Dims length_dims;
    for (const Dim& of : dim.length_dims()) length_dims.push_back(names.resolve(of));
    if (length_dims != dim.length_dims())
      names.bind(dim, dim_symbol(dim.name(), std::move(length_dims)));
  }
  std::vector<TensorType> result(given.begin(), given.end());
  for (std::size_t i = 0; i < result.size(); ++i)
    if (is_changing[i]) result[i] = names.resolve(body.types[body_inputs(loop).carries[i]]);
  return result;
}

}  // namespace

bool saves_in_one_buffer(const RecomputeAttrs& attrs, std::span<const TensorType> inputs) {
  const LoopAttrs& loop = attrs.saving();
  return loop.trips.is_full && first_dense_slice(loop, inputs) && !loop.makes_lengths();
}

ReplaySegmentGraphs::ReplaySegmentGraphs(const RecomputeAttrs& attrs,
                                         std::vector<TensorType> inputs, const DimChanges& renames)
    : loop_(attrs.loop),
      first_residual_(attrs.first_residual),
      types_(std::move(inputs)),
      renames_(renames) {
  const std::size_t own = attrs.loop_inputs(types_.size());
  if (loop().makes_lengths())
    lengths_.push_back(types_[own + 1]);
  else if (const TensorType* const lengths = operands_of(loop(), types_).lengths)
    lengths_.push_back(*lengths);
  types_.erase(types_.begin() + static_cast<std::ptrdiff_t>(own), types_.end());
  is_dense_ = saves_in_one_buffer(attrs, types_);
  time_ = find_time();
  symbols_ = find_symbols();
}

/// Returns the named dim of dense slices, or a plain one.
Dim ReplaySegmentGraphs::find_time() const {
  Dim time;
  for (const TensorType& slices : operands_of(loop(), types_).slices)
    if (!slices.is_list() && slices.dims()[0].is_named()) time = slices.dims()[0];
  return time;
}

/// Returns the symbols that a segment's inputs do not bind.
Dims ReplaySegmentGraphs::find_symbols() const {
  std::vector<TensorType> inside = types_;  // with the slices of one step
  const auto operands = operands_of(loop(), inside);
  for (TensorType& slices : operands.slices)
    if (!slices.is_list()) slices = slice_type(slices);
  Dims symbols;
  const auto add = [&](const Dim& symbol) {
    if (symbol.is_named() && !contains(symbols, symbol)) symbols.push_back(symbol);
  };
  LoopAttrs steps = make_chunk_loop(loop(), Dim(1));  // without the dim of all time steps
  steps.cond = SubGraph();
  make_attrs(std::move(steps))->each_symbol(add);
  // Symbols that inputs do not bind but that a plan stores: computed dims (time + 1), and dims of
  // captures that recomputed iterations do not read.
  Dims given;
  for (const TensorType& type : std::span(inside).first(inside.size() - operands.captures.size()))
    for_each_bound(type, [&](const Dim& dim) { given.push_back(dim); });
  for (const TensorType& type : inside)
    for_each_symbol(type, [&](const Dim& dim) {
      if (!contains(given, dim)) add(dim);
    });
  return symbols;
}

/// Returns the loop over the time steps of `chunk`: without condition, effects and policy, as the
/// trip count is known and residuals stay in memory.
LoopAttrs ReplaySegmentGraphs::loop_of_segment(const Dim& chunk) const {
  LoopAttrs segment = make_chunk_loop(loop(), chunk);
  segment.body.graph = without_effects(*segment.body.graph);
  segment.cond = SubGraph();
  segment.cond_captures.clear();
  segment.debug.origin = {};
  segment.policy.steps = segment.policy.bytes = 0;
  segment.policy.swaps = false;
  segment.trips.has_lengths = !lengths_.empty();
  if (!is_dense_) {
    segment.trips.has_bound = true;
    segment.trips.is_full = false;
  }
  for (LoopStack& stack : segment.stacks) {
    stack.residence = Residence::memory;
    stack.is_list = stack.is_list || !is_dense_;
  }
  return segment;
}

/// Adds the inputs of a segment's graph. Returns those that its loop takes: all but the symbols.
std::vector<ValueId> ReplaySegmentGraphs::add_inputs(Graph& to, const LoopAttrs& segment,
                                                     const Dim& chunk) const {
  const auto add = [&](const TensorType& type) { to.inputs.push_back(to.add_value(type)); };
  if (segment.trips.has_bound) add(TensorType(i64));
  if (segment.trips.has_lengths) add(lengths_[0]);
  add(TensorType(i64, {2}));
  const std::ptrdiff_t first_token = std::ssize(to.inputs);
  for (const Dim& symbol : symbols_) add(token_type(symbol));
  const auto operands = operands_of(loop(), types_);
  for (const TensorType& type : types_of_carries(loop(), types_)) add(type);
  for (const TensorType& slices : operands.slices) add(chunk_type(slices, chunk));
  to.formal_count = to.inputs.size();
  for (const TensorType& type : operands.captures) add(type);
  std::vector<ValueId> result = to.inputs;
  const auto tokens = result.begin() + first_token;
  result.erase(tokens, tokens + std::ssize(symbols_));
  return result;
}

Ref<Graph> ReplaySegmentGraphs::make_graph(const Dim& chunk, bool saves) const {
  Ref<Graph> graph(new Graph);
  graph->name = loop().name;
  graph->renames = renames_;
  LoopAttrs segment = loop_of_segment(chunk);
  const std::vector<ValueId> given = add_inputs(*graph, segment, chunk);
  const AttrsRef attrs = make_attrs(std::move(segment));
  const std::vector<ValueId> made = append_typed(*graph, loop_op, attrs, given);
  const auto results = results_of(get<LoopAttrs>(attrs.get()), made);
  graph->outputs.assign(results.carries.begin(), results.carries.end());
  if (saves)
    for (const ValueId v : results.stacks.subspan(first_residual_)) graph->outputs.push_back(v);
  graph->seal();
#ifndef NDEBUG
  verify(*graph, "segments");
#endif
  return graph;
}

GraphRef ReplaySegmentGraphs::graph_for(std::int64_t count, bool saves) {
  const bool any = time_.is_named();
  const std::pair<std::int64_t, bool> key(any ? 0 : count, saves);
  const std::lock_guard lock(mutex_);
  if (graphs_.size() >= kMaxCached && !graphs_.count(key)) graphs_.clear();
  GraphRef& graph = graphs_[key];
  if (!graph) graph = make_graph(any ? part_symbol(time_) : Dim(count), saves);
  return graph;
}

Dim ReplaySegmentGraphs::dim_of_segment(const Dim& time, std::int64_t first, std::int64_t count) {
  if (!time.is_named() || time.is_ragged()) return part_of_dim(time, first, count);
  const std::lock_guard lock(mutex_);
  if (segment_dims_.size() >= kMaxCached && !segment_dims_.count(count)) segment_dims_.clear();
  const auto found = segment_dims_.find(count);
  if (found != segment_dims_.end() && found->second.name() == time.name()) return found->second;
  return segment_dims_.insert_or_assign(count, part_of_dim(time, first, count)).first->second;
}

}  // namespace reel
