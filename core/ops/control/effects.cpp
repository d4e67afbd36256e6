#include "reel/core/ops/control/effects.h"

#include <algorithm>

#include "reel/core/ops/control/checkpointed.h"
#include "reel/core/ops/control/checks.h"
#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/control/recompute.h"
#include "reel/core/ops/loop/loop.h"

namespace reel {

namespace {
using IsEffect = bool (*)(const Op&);

bool has_any(const Graph& graph, IsEffect is_effect);

bool has_any(const OpRecord& record, IsEffect is_effect) {
  const auto in = [&](const SubGraph& part) { return has_any(*part.graph, is_effect); };
  if (record.op == &loop_op) {
    const auto& attrs = get<LoopAttrs>(record.attrs.get());
    return in(attrs.body) || (attrs.cond && in(attrs.cond));
  }
  if (record.op == &cond_op) {
    const auto& attrs = get<CondAttrs>(record.attrs.get());
    return in(attrs.on_true) || in(attrs.on_false);
  }
  if (record.op == &checkpointed_op) return in(get<CheckpointedAttrs>(record.attrs.get()).body);
  if (record.op == &recompute_op && is_effect == is_collective)  // replay segments run them again
    return in(get<RecomputeAttrs>(record.attrs.get()).saving().body);
  return is_effect(*record.op);
}

bool has_any(const Graph& graph, IsEffect is_effect) {
  return std::any_of(graph.records.begin(), graph.records.end(),
                     [&](const OpRecord& record) { return has_any(record, is_effect); });
}

bool is_effect(const Op& op) { return op.has_effect; }
}  // namespace

bool has_effects(const OpRecord& record) { return has_any(record, is_effect); }
bool has_effects(const Graph& graph) { return has_any(graph, is_effect); }
bool has_checks(const OpRecord& record) { return has_any(record, is_check); }
bool has_lasting_effects(const Graph& graph) {
  return has_any(graph, [](const Op& op) { return op.has_effect && !is_check(op); });
}

bool is_collective(const Op& op) { return op.has_effect && op.storage != OpStorage::input; }
bool has_collectives(const OpRecord& record) { return has_any(record, is_collective); }
bool has_collectives(const Graph& graph) { return has_any(graph, is_collective); }

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

bool has_loops(const Graph& graph) {
  return std::any_of(graph.records.begin(), graph.records.end(), [](const OpRecord& record) {
    if (record.op != &cond_op) return record.op == &loop_op;
    const auto& attrs = get<CondAttrs>(record.attrs.get());
    return has_loops(*attrs.on_true.graph) || has_loops(*attrs.on_false.graph);
  });
}

}  // namespace reel
