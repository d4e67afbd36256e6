#include "reel/autodiff/saving_loop.h"

#include <algorithm>
#include <span>

#include "reel/autodiff/backward.h"
#include "reel/core/graph/graph_builder.h"
#include "reel/core/op/bind.h"
#include "reel/core/ops/control/effects.h"
#include "reel/core/ops/control/recompute.h"
#include "reel/core/types/mode.h"

namespace reel {
namespace {

/// The record that makes a value, and the number of the output.
struct Maker {
  const OpRecord* record = nullptr;  ///< null: no record of the graph
  std::size_t output = 0;
};
std::vector<Maker> makers_of(const Graph& graph) {
  std::vector<Maker> result(graph.types.size());
  for (const OpRecord& record : graph.records) {
    const auto out = graph.outputs_of(record);
    for (std::size_t k = 0; k < out.size(); ++k) result[out[k]] = {&record, k};
  }
  return result;
}

/// Returns true if the value is a tensor that stands for saved steps, most of them not in memory.
bool stands_for_steps(const Maker& maker) {
  return maker.record &&
         (maker.record->op == &recompute_op || is_spilled_output(*maker.record, maker.output));
}

/// Returns true if the value is the residual list of an inner loop.
bool is_residual_list(const Maker& maker) {
  if (!maker.record || maker.record->op != &loop_op) return false;
  const auto& loop = get<LoopAttrs>(maker.record->attrs.get());
  const LoopLeaf leaf = result_at(loop, maker.output);
  return leaf.is(LeafKind::stack) && loop.stacks[leaf.index].is_list &&
         loop.stacks[leaf.index].is_raw();
}

/// Returns the stack of a residual, without its dim.
LoopStack stack_of(const Residual& residual, const Maker& maker, bool is_list, bool swaps) {
  LoopStack stack{.role = StackRole::residual, .is_list = is_list};
  if (maker.record && is_checkpoint_output(*maker.record, maker.output))
    stack.role = StackRole::inner_checkpoints;
  if (stands_for_steps(maker)) {  // it has no data
    stack.is_list = true;
    return stack;
  }
  // Arrays share elements between iterations; an inner loop's residual lists do not.
  const bool has_own_elements = !residual.type.is_list() || is_residual_list(maker);
  if (may_spill() && (swaps || residual.spills) && has_own_elements)
    stack.residence = Residence::file;
  return stack;
}

/// Returns the body with the values `extra` as outputs behind its stacks.
Ref<Graph> with_outputs(const Graph& graph, const LoopAttrs& attrs,
                        std::span<const ValueId> extra) {
  Ref<Graph> body(new Graph(graph));
  const auto own = body_outputs_of(attrs, graph.outputs);
  body->outputs.assign(own.carries.begin(), own.carries.end());
  for (const std::span<const ValueId> more : {own.stacks, extra, own.sums})
    body->outputs.insert(body->outputs.end(), more.begin(), more.end());
  body->seal();
  return body;
}

/// Returns the loop with the residuals of the reversed body as further stacks.
LoopAttrs with_residuals(LoopApplication& loop, const ReversedGraph& reversed) {
  const std::optional<Dim> dim = iterated_dim(loop);
  DimEnv& env = loop.env;
  const auto mentions_dim = [&](const Dim& axis) {
    if (!dim->is_named()) return false;
    const Dim outside = env.knows(axis) ? env.resolve(axis) : axis;
    return outside == *dim || contains(outside.length_dims(), *dim);
  };
  LoopAttrs result = loop.attrs;
  if (result.trips.makes_dim) {
    for (LoopStack& stack : result.stacks) stack.dim = *dim;
    result.trips.makes_dim = false;
  }
  const std::vector<Maker> makers = makers_of(*reversed.forward);
  std::vector<ValueId> values;
  for (const Residual& residual : reversed.residuals) {
    const bool clashes =
        dim && residual.type.rank() &&
        (residual.type.is_named() != dim->is_named() ||
         std::any_of(residual.type.dims().begin(), residual.type.dims().end(), mentions_dim));
    const bool is_list = residual.is_local || residual.type.is_list() || !dim || clashes;
    result.stacks.push_back(
        stack_of(residual, makers[residual.value], is_list, result.policy.swaps));
    result.stacks.back().dim = dim.value_or(Dim(0));
    values.push_back(residual.value);
  }
  result.debug.origin = loop.attrs.debug.origin ? loop.attrs.debug.origin : loop.attrs.body.graph;
  result.body = make_sub_graph(with_outputs(*reversed.forward, loop.attrs, values), env);
  return result;
}

/// Returns the loop with lists of checkpoints as further stacks: the number of steps before each
/// checkpoint, then the carries.
LoopAttrs with_checkpoints(LoopApplication& loop) {
  const LoopAttrs& attrs = loop.attrs;
  LoopStack stack{.role = StackRole::checkpoint_step, .is_list = true};
  if (!attrs.trips.makes_dim) stack.dim = attrs.stacks.empty() ? Dim(0) : attrs.stacks[0].dim;
  LoopAttrs result = attrs;
  result.stacks.push_back(stack);
  stack.role = StackRole::checkpoint_state;
  if (attrs.policy.swaps && may_spill()) stack.residence = Residence::file;
  result.stacks.insert(result.stacks.end(), attrs.carries.size(), stack);
  result.debug.origin = attrs.debug.origin ? attrs.debug.origin : attrs.body.graph;

  Ref<Graph> body(new Graph(loop.body));
  std::vector<ValueId> extra{append_steps(*body)};
  const auto carries = body_inputs(attrs).carries;
  extra.insert(extra.end(), carries.begin(), carries.end());
  result.body = make_sub_graph(with_outputs(*body, attrs, extra), loop.env);
  return result;
}

}  // namespace

bool may_spill() { return !thread_mode.builder || !thread_mode.builder->outer(); }

SavingLoop forward_with_residuals(LoopApplication& loop, const ReversedGraph& reversed) {
  const std::size_t own_stacks = loop.attrs.stacks.size();
  LoopAttrs saving = with_residuals(loop, reversed);
  const bool recomputes = loop.attrs.policy.has_checkpoints() && !reversed.residuals.empty();
  SavingLoop result{recomputes ? with_checkpoints(loop) : saving, {}, {}};
  result.results = apply_again(loop.at, loop_op, loop.inputs, make_attrs(result.attrs));
  const auto results = results_of(result.attrs, result.results);
  const auto extra = results.stacks.subspan(own_stacks);
  if (!recomputes) {
    result.residuals.assign(extra.begin(), extra.end());
    return result;
  }
  Tensors inputs = loop.inputs;
  inputs.push_back(results.trips);
  if (results.lengths) inputs.push_back(*results.lengths);
  inputs.insert(inputs.end(), extra.begin(), extra.end());
  result.residuals =
      bind_all(recompute_op, inputs,
               make_attrs(RecomputeAttrs{make_attrs(std::move(saving)), own_stacks, {}, {}, {}}));
  return result;
}

}  // namespace reel
