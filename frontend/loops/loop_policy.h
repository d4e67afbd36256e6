// frontend/loops/loop_policy.h — a loop's options for its gradient's memory as attributes.
#pragma once

#include <utility>

#include "reel/core/base/visibility.h"
#include "reel/core/ops/loop/loop_attrs.h"
#include "reel/core/options/checkpoint_policy.h"

namespace reel {

/// While an object exists, loops of this thread are recorded without policies: their gradients read
/// residuals of all iterations from memory, and have the same values.
class LoopPoliciesOff {
 public:
  LoopPoliciesOff() : before_(std::exchange(are_off, true)) {}
  ~LoopPoliciesOff() { are_off = before_; }
  LoopPoliciesOff(const LoopPoliciesOff&) = delete;
  LoopPoliciesOff& operator=(const LoopPoliciesOff&) = delete;

  static bool holds() { return are_off; }

 private:
  // libreel.so and libreel_onnx.so must share it.
  REEL_API static inline constinit thread_local bool are_off = false;
  const bool before_;
};

/// Returns a loop's options for its gradient's memory, as its attributes hold them.
inline CheckpointPlan checkpoint_plan(const Checkpoint& checkpoint, const SwapMemory& swap) {
  CheckpointPlan plan;
  if (LoopPoliciesOff::holds()) return plan;
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
  return !LoopPoliciesOff::holds() && (!checkpoint.keeps_all() || swap.spill());
}

}  // namespace reel
