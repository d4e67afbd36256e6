#include "reel/trace/executors/checkpoints/replay_segments.h"

#include <algorithm>

#include "reel/core/graph/passes/without_effects.h"
#include "reel/core/ops.h"
#include "reel/core/ops/list/list.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/runtime/residual_source.h"
#include "reel/core/types/dim_symbol.h"
#include "reel/trace/executors/checkpoints/reverse_schedule.h"
#include "reel/trace/executors/interpreter.h"
#include "reel/trace/executors/loop/chunks.h"
#include "reel/trace/executors/loop/iterations.h"
#include "reel/trace/executors/loop/loop_types.h"

namespace reel {
namespace {

/// Returns the slices of the time steps of `chunk`, from `first` on, as a view.
Tensor rows_of(const Tensor& slices, std::int64_t first, const Dim& chunk) {
  return Tensor(allocate_view(chunk_type(slices.type(), chunk), slices.ref(),
                              slices.data<char>() + first * slice_type(slices.type()).bytes()));
}

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

ReplaySegmentGraphs::ReplaySegmentGraphs(const RecomputeAttrs& attrs,
                                         std::vector<TensorType> inputs, const DimChanges& renames)
    : loop_(attrs.loop),
      first_residual_(attrs.first_residual),
      types_(std::move(inputs)),
      renames_(renames) {
  const LoopAttrs& loop = this->loop();
  const std::size_t own = attrs.loop_inputs(types_.size());
  if (loop.makes_lengths())
    lengths_.push_back(types_[own + 1]);
  else if (const TensorType* const lengths = operands_of(loop, types_).lengths)
    lengths_.push_back(*lengths);
  types_.erase(types_.begin() + static_cast<std::ptrdiff_t>(own), types_.end());
  is_dense_ = saves_in_one_buffer(attrs, types_);
  std::vector<TensorType> inside = types_;  // with the slices of one step
  const auto operands = operands_of(loop, inside);
  for (TensorType& slices : operands.slices) {
    if (slices.is_list()) continue;
    if (slices.dims()[0].is_named()) time_ = slices.dims()[0];
    slices = slice_type(slices);
  }
  const auto add = [&](const Dim& symbol) {
    if (symbol.is_named() && !contains(symbols_, symbol)) symbols_.push_back(symbol);
  };
  LoopAttrs steps = make_chunk_loop(loop, Dim(1));  // without the dim of all time steps
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
}

Ref<Graph> ReplaySegmentGraphs::make_graph(const Dim& chunk, bool saves) const {
  const LoopAttrs& loop = this->loop();
  LoopAttrs steps = make_chunk_loop(loop, chunk);
  steps.body.graph = without_effects(*steps.body.graph);
  steps.cond = SubGraph();
  steps.cond_captures.clear();
  steps.debug.origin = {};
  steps.policy.steps = steps.policy.bytes = 0;
  steps.policy.swaps = false;
  steps.trips.has_lengths = !lengths_.empty();
  if (!is_dense_) {
    steps.trips.has_bound = true;
    steps.trips.is_full = false;
  }
  for (LoopStack& stack : steps.stacks) {
    stack.residence = Residence::memory;
    stack.is_list = stack.is_list || !is_dense_;
  }
  Ref<Graph> graph(new Graph);
  graph->name = loop.name;
  graph->renames = renames_;
  const auto add_input = [&](const TensorType& type) {
    graph->inputs.push_back(graph->add_value(type));
  };
  if (steps.trips.has_bound) add_input(TensorType(i64));
  if (steps.trips.has_lengths) add_input(lengths_[0]);
  add_input(TensorType(i64, {2}));
  const std::size_t first_token = graph->inputs.size();
  for (const Dim& symbol : symbols_) add_input(token_type(symbol));
  const auto operands = operands_of(loop, types_);
  for (const TensorType& type : types_of_carries(loop, types_)) add_input(type);
  for (const TensorType& slices : operands.slices) add_input(chunk_type(slices, chunk));
  graph->formal_count = graph->inputs.size();
  for (const TensorType& type : operands.captures) add_input(type);
  const AttrsRef attrs = make_attrs(std::move(steps));
  TypeList out;
  std::vector<ValueId> given = graph->inputs;
  const auto tokens = given.begin() + static_cast<std::ptrdiff_t>(first_token);
  given.erase(tokens, tokens + std::ssize(symbols_));
  const std::vector<TensorType> in = graph->types_of(given);
  TypeArgs rule{loop_op, attrs.get(), in, out};
  loop_op.type(rule);
  std::vector<ValueId> made;
  for (const TensorType& type : out.span()) made.push_back(graph->add_value(type));
  graph->append(loop_op, attrs, given, made);
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

Dim ReplaySegmentGraphs::part_of(const Dim& time, std::int64_t first, std::int64_t count) {
  if (!time.is_named() || time.is_ragged()) return part_of_dim(time, first, count);
  const std::lock_guard lock(mutex_);
  if (parts_.size() >= kMaxCached && !parts_.count(count)) parts_.clear();
  const auto found = parts_.find(count);
  if (found != parts_.end() && found->second.name() == time.name()) return found->second;
  return parts_.insert_or_assign(count, part_of_dim(time, first, count)).first->second;
}

ReplaySegments::ReplaySegments(const RecomputeAttrs& attrs, Tensors inputs)
    : attrs_(attrs), loop_(attrs_.saving()), inputs_(std::move(inputs)), graphs_(attrs.graphs) {
  if (!graphs_) {
    std::vector<TensorType> types;
    for (const Tensor& input : inputs_) types.push_back(input.type());
    graphs_ = std::make_shared<ReplaySegmentGraphs>(attrs_, std::move(types));
  }
  for (const Dim& dim : attrs_.dims) tokens_.emplace_back(allocate_block(token_type(dim)));
  const std::size_t own = attrs_.loop_inputs(inputs_.size());
  steps_ = integer_of(inputs_[own]);
  if (loop_.makes_lengths())
    lengths_ = inputs_[own + 1];
  else if (const Tensor* const lengths = operands_of(loop_, inputs_).lengths)
    lengths_ = *lengths;
  inputs_.resize(own);
  for (const Tensor& slices : operands_of(loop_, inputs_).slices) {
    if (!slices.type().is_list() && slices.dims()[0].is_named()) time_ = slices.dims()[0];
    lists_.push_back(slices.type().is_list() ? list_elements(slices) : Tensors());
  }
}

/// Returns the carries with the dims of the captures where the body gives both one dim. If an outer
/// loop ran an iteration twice, the checkpoints have the dims of its first run, the captures those
/// of the second.
Tensors ReplaySegments::named_as_captures(Tensors carries) const {
  const Graph& body = *loop_.body.graph;
  const auto formals = body_inputs(loop_);
  const auto operands = operands_of(loop_, inputs_);
  DimEnv dims;
  for (std::size_t i = 0; i < formals.captures.size(); ++i)
    dims.bind(body.types[formals.captures[i]],
              operands.captures[static_cast<std::size_t>(loop_.body_captures[i])].type());
  for (std::size_t i = 0; i < carries.size(); ++i) {
    const TensorType& formal = body.types[formals.carries[i]];
    if (formal.is_list() || formal.rank() != carries[i].rank()) continue;
    Dims named = carries[i].dims();
    for (std::size_t axis = 0; axis < named.size(); ++axis)
      if (dims.knows(formal.dims()[axis])) named[axis] = dims.resolve(formal.dims()[axis]);
    if (named != carries[i].dims())
      carries[i] = named_alike(carries[i], carries[i].type().with(named));
  }
  return carries;
}

ReplaySegments::Ran ReplaySegments::run(std::int64_t begin, std::int64_t end,
                                        const Tensors& carries, bool saves) {
  const std::int64_t count = end - begin, first = loop_.trips.is_reverse ? steps_ - end : begin;
  const Dim chunk = graphs_->part_of(time_, first, count);
  Tensors inputs;
  inputs.reserve(inputs_.size() + tokens_.size() + 3);
  if (!is_dense()) inputs.push_back(scalar(count, i64));
  if (lengths_.is_defined()) inputs.push_back(lengths_);
  inputs.push_back(tensor({first, steps_}, {}, i64));
  inputs.insert(inputs.end(), tokens_.begin(), tokens_.end());
  const Tensors named = named_as_captures(carries);
  inputs.insert(inputs.end(), named.begin(), named.end());
  const auto operands = operands_of(loop_, inputs_);
  for (std::size_t i = 0; i < operands.slices.size(); ++i) {
    const Tensor& slices = operands.slices[i];
    inputs.push_back(slices.type().is_list() ? part_of_list(slices, lists_[i], first, count)
                                             : rows_of(slices, first, chunk));
  }
  inputs.insert(inputs.end(), operands.captures.begin(), operands.captures.end());
  const GraphRef graph = graphs_->graph_for(count, saves);
  const GraphRunner runner = attrs_.runner.value_or(GraphRunner{interpret});
  Tensors made = runner(graph, std::move(inputs));
  const auto first_residual = made.begin() + std::ssize(loop_.carries);
  return {Tensors(made.begin(), first_residual), Tensors(first_residual, made.end())};
}

}  // namespace reel
