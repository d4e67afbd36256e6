// frontend/loops/loop_policy.h — a loop's options for its gradient's memory as attributes.
#pragma once

#include "reel/core/ops/loop/loop_attrs.h"
#include "reel/core/options/checkpoint_policy.h"

namespace reel {

/// Returns a loop's options for its gradient's memory, as its attributes hold them.
inline CheckpointPlan checkpoint_plan(const Checkpoint& checkpoint, const SwapMemory& swap) {
  CheckpointPlan plan;
  plan.steps = checkpoint.steps();
  plan.bytes = checkpoint.bytes();
  plan.rule = checkpoint.rule();
  plan.swaps = swap.spill().has_value();
  const Spill spill = swap.spill().value_or(Spill{});  // a rule may select spilling too
  plan.spill_folder = spill.folder;
  plan.spill_window = spill.bytes_in_memory;
  return plan;
}
inline bool has_policy(const Checkpoint& checkpoint, const SwapMemory& swap) {
  return !checkpoint.keeps_all() || swap.spill();
}

}  // namespace reel
