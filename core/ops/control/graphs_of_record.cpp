#include "reel/core/ops/control/graphs_of_record.h"

#include "reel/core/ops/control/checkpointed.h"
#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/control/custom_vjp_parts.h"
#include "reel/core/ops/control/fused.h"
#include "reel/core/ops/control/recompute.h"
#include "reel/core/ops/loop/loop.h"

namespace reel {

bool runs_sub_graphs(const Op& op) {
  return &op == &loop_op || &op == &cond_op || &op == &checkpointed_op || &op == &recompute_op;
}

bool has_sub_graphs(const Op& op) { return runs_sub_graphs(op) || is_custom_vjp(op); }

std::vector<SubGraph> sub_graphs_of(const OpRecord& record) {
  const Attrs* const attrs = record.attrs.get();
  const auto of_loop = [](const LoopAttrs& loop) { return std::vector{loop.body, loop.cond}; };
  if (record.op == &loop_op) return of_loop(get<LoopAttrs>(attrs));
  if (record.op == &recompute_op) return of_loop(get<RecomputeAttrs>(attrs).saving());
  if (record.op == &cond_op) return {get<CondAttrs>(attrs).on_true, get<CondAttrs>(attrs).on_false};
  if (record.op == &checkpointed_op) return {get<CheckpointedAttrs>(attrs).body};
  if (record.op == &fused_op) return {get<FusedAttrs>(attrs).body};
  if (is_custom_vjp(*record.op)) return {custom_vjp_parts(record.attrs).graph};
  return {};
}

}  // namespace reel
