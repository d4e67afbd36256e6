#include "reel/autodiff/saving_loop.h"

#include <algorithm>

#include "reel/core/graph/graph_builder.h"
#include "reel/core/ops/control/recompute.h"
#include "reel/core/ops/list/list.h"
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
bool is_saved_list(const Maker& maker) {
  if (!maker.record || maker.record->op != &loop_op) return false;
  const auto& loop = get<LoopAttrs>(maker.record->attrs.get());
  const std::size_t stack = maker.output - loop.first_stack();
  return maker.output >= loop.first_stack() && maker.output < loop.first_sum() &&
         loop.is_list(stack) && loop.is_raw(stack);
}

}  // namespace

bool may_spill() { return !thread_mode.builder || !thread_mode.builder->outer(); }

LoopAttrs with_saved(const LoopAttrs& attrs, const ReversedGraph& reversed,
                     const std::optional<Dim>& dim, DimEnv& env) {
  LoopAttrs result = attrs;
  const std::size_t extra = reversed.saved.size();
  const auto mentions_dim = [&](const Dim& axis) {
    if (!dim->is_named()) return false;
    const Dim outside = env.knows(axis) ? env.resolve(axis) : axis;
    return outside == *dim || contains(outside.length_dims(), *dim);
  };
  const std::vector<Maker> makers = makers_of(*reversed.forward);
  for (const Saved& saved : reversed.saved) {
    const bool clashes =
        dim && saved.type.rank() &&
        (saved.type.is_named() != dim->is_named() ||
         std::any_of(saved.type.dims().begin(), saved.type.dims().end(), mentions_dim));
    const bool is_list = saved.is_local || saved.type.is_list() || !dim || clashes;
    std::uint8_t kind = is_list ? LoopAttrs::kList | LoopAttrs::kRaw : LoopAttrs::kRaw;
    const Maker& maker = makers[saved.value];
    if (maker.record && is_checkpoint_output(*maker.record, maker.output))
      kind |= LoopAttrs::kOfCheckpoints;
    if (stands_for_steps(maker)) {  // it has no data
      result.stack_kinds.push_back(kind | LoopAttrs::kList);
      continue;
    }
    // Arrays share elements between iterations; an inner loop's residual lists do not.
    const bool has_own_elements = !saved.type.is_list() || is_saved_list(maker);
    if (may_spill() && (attrs.swaps || saved.spills) && has_own_elements)
      kind |= LoopAttrs::kSpilled;
    result.stack_kinds.push_back(kind);
  }
  result.stacks += static_cast<int>(extra);
  if (result.makes_dim) {
    result.stack_dims.assign(attrs.stacks, *dim);
    result.makes_dim = false;
  }
  result.stack_dims.insert(result.stack_dims.end(), extra, dim.value_or(Dim(0)));
  if (!result.adds_finished_to_running.empty())
    result.adds_finished_to_running.insert(
        result.adds_finished_to_running.begin() + attrs.carries + attrs.stacks, extra, 0);
  result.origin = attrs.origin ? attrs.origin : attrs.body.graph;
  return result;
}

Ref<Graph> with_outputs(const Graph& graph, const LoopAttrs& attrs,
                        const std::vector<ValueId>& extra) {
  Ref<Graph> body(new Graph(graph));
  body->outputs.insert(body->outputs.begin() + attrs.carries + attrs.stacks, extra.begin(),
                       extra.end());
  body->seal();
  return body;
}

LoopAttrs with_checkpoints(const LoopAttrs& attrs) {
  LoopAttrs result = attrs;
  const auto extra = static_cast<std::size_t>(1 + attrs.carries);
  const std::uint8_t kind = LoopAttrs::kList | LoopAttrs::kRaw | LoopAttrs::kCheckpoint;
  result.stacks += static_cast<int>(extra);
  result.stack_kinds.push_back(kind | LoopAttrs::kSteps);
  const std::uint8_t spilled = attrs.swaps && may_spill() ? LoopAttrs::kSpilled : 0;
  result.stack_kinds.resize(result.stack_kinds.size() + extra - 1, kind | spilled);
  if (!result.makes_dim)
    result.stack_dims.resize(result.stack_dims.size() + extra,
                             result.stack_dims.empty() ? Dim(0) : result.stack_dims[0]);
  if (!result.adds_finished_to_running.empty())
    result.adds_finished_to_running.insert(
        result.adds_finished_to_running.begin() + attrs.carries + attrs.stacks, extra, 0);
  result.origin = attrs.origin ? attrs.origin : attrs.body.graph;
  return result;
}

Ref<Graph> with_checkpoints(const Graph& graph, const LoopAttrs& attrs) {
  Ref<Graph> body(new Graph(graph));
  std::vector<ValueId> extra{append_steps(*body)};
  extra.insert(extra.end(), body->inputs.begin() + 1, body->inputs.begin() + 1 + attrs.carries);
  return with_outputs(*body, attrs, extra);
}

}  // namespace reel
