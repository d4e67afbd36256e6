#include "reel/core/ops/control/effects.h"

#include <algorithm>

#include "reel/core/ops/control/checkpointed.h"
#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/control/recompute.h"
#include "reel/core/ops/loop/loop.h"

namespace reel {

namespace {
/// Returns true if a graph inside the record meets the condition, or the op of a record without
/// graphs does.
template <class OfGraph, class OfOp>
bool any_inside(const OpRecord& record, const OfGraph& of_graph, const OfOp& of_op) {
  if (record.op == &loop_op) {
    const auto& attrs = get<LoopAttrs>(record.attrs.get());
    return of_graph(*attrs.body.graph) || (attrs.cond && of_graph(*attrs.cond.graph));
  }
  if (record.op == &cond_op) {
    const auto& attrs = get<CondAttrs>(record.attrs.get());
    return of_graph(*attrs.on_true.graph) || of_graph(*attrs.on_false.graph);
  }
  if (record.op == &checkpointed_op)
    return of_graph(*get<CheckpointedAttrs>(record.attrs.get()).body.graph);
  return of_op(*record.op);
}
}  // namespace

bool has_effects(const OpRecord& record) {
  return any_inside(
      record, [](const Graph& graph) { return has_effects(graph); },
      [](const Op& op) { return op.has_effect; });
}

bool is_collective(const Op& op) { return op.has_effect && op.storage != OpStorage::input; }
bool has_collectives(const OpRecord& record) {
  if (record.op == &recompute_op)  // its replay segments run them again
    return has_collectives(*get<RecomputeAttrs>(record.attrs.get()).saving().body.graph);
  return any_inside(
      record, [](const Graph& graph) { return has_collectives(graph); }, is_collective);
}

namespace {
/// Returns the loop's stack that an output of the record is; null if it is none.
const LoopStack* stack_of(const OpRecord& record, std::size_t output) {
  if (record.op != &loop_op) return nullptr;
  const auto& attrs = get<LoopAttrs>(record.attrs.get());
  const LoopLeaf leaf = result_at(attrs, output);
  return leaf.is(LeafKind::stack) ? &attrs.stacks[leaf.index] : nullptr;
}
}  // namespace
bool is_spilled_output(const OpRecord& record, std::size_t output) {
  const LoopStack* const stack = stack_of(record, output);
  return stack && stack->is_in_file();
}
bool is_checkpoint_output(const OpRecord& record, std::size_t output) {
  const LoopStack* const stack = stack_of(record, output);
  return stack && stack->memory_class() == MemoryClass::checkpoints;
}

bool has_effects(const Graph& graph) {
  return std::any_of(graph.records.begin(), graph.records.end(),
                     [](const OpRecord& r) { return has_effects(r); });
}

bool has_collectives(const Graph& graph) {
  return std::any_of(graph.records.begin(), graph.records.end(),
                     [](const OpRecord& r) { return has_collectives(r); });
}

bool has_loops(const Graph& graph) {
  return std::any_of(graph.records.begin(), graph.records.end(), [](const OpRecord& record) {
    if (record.op != &cond_op) return record.op == &loop_op;
    const auto& attrs = get<CondAttrs>(record.attrs.get());
    return has_loops(*attrs.on_true.graph) || has_loops(*attrs.on_false.graph);
  });
}

}  // namespace reel
