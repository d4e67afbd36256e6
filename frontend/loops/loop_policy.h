// frontend/loops/loop_policy.h — writes a loop's options for its gradient's memory into its
// attributes.
#pragma once

#include "reel/core/ops/control/loop.h"
#include "reel/core/options/checkpoint_policy.h"

namespace reel {

inline void set_policy(LoopAttrs& attrs, const Checkpoint& checkpoint, const SwapMemory& swap) {
  attrs.checkpoint_steps = checkpoint.steps();
  attrs.checkpoint_bytes = checkpoint.bytes();
  attrs.keeps = checkpoint.rule();
  attrs.swaps = swap.spill().has_value();
  const Spill spill = swap.spill().value_or(Spill{});  // a rule may select spilling too
  attrs.spill_folder = spill.folder;
  attrs.spill_window = spill.bytes_in_memory;
}
inline bool has_policy(const Checkpoint& checkpoint, const SwapMemory& swap) {
  return !checkpoint.keeps_all() || swap.spill();
}

}  // namespace reel
