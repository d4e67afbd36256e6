#include "reel/core/ops/control/effects.h"

#include <algorithm>

#include "reel/core/ops/control/checkpointed.h"
#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/loop/loop.h"

namespace reel {

bool has_effects(const OpRecord& record) {
  if (record.op == &loop_op) {
    const auto& attrs = get<LoopAttrs>(record.attrs.get());
    return has_effects(*attrs.body.graph) || (attrs.cond && has_effects(*attrs.cond.graph));
  }
  if (record.op == &cond_op) {
    const auto& attrs = get<CondAttrs>(record.attrs.get());
    return has_effects(*attrs.on_true.graph) || has_effects(*attrs.on_false.graph);
  }
  if (record.op == &checkpointed_op)
    return has_effects(*get<CheckpointedAttrs>(record.attrs.get()).body.graph);
  return record.op->has_effect;
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

bool has_loops(const Graph& graph) {
  return std::any_of(graph.records.begin(), graph.records.end(), [](const OpRecord& record) {
    if (record.op != &cond_op) return record.op == &loop_op;
    const auto& attrs = get<CondAttrs>(record.attrs.get());
    return has_loops(*attrs.on_true.graph) || has_loops(*attrs.on_false.graph);
  });
}

}  // namespace reel
