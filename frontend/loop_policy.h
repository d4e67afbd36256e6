// frontend/loop_policy.h — what the options of a loop say of its gradient's memory.
#pragma once

#include "reel/core/checkpoint_policy.h"
#include "reel/core/ops/loop.h"

namespace reel {

inline void set_policy(LoopAttrs& attrs, const Checkpoint& checkpoint, const SwapMemory& swap) {
  attrs.checkpoint_steps = checkpoint.steps();
  attrs.checkpoint_bytes = checkpoint.bytes();
  attrs.swaps = swap.spill().has_value();
  if (!attrs.swaps) return;
  attrs.spill_folder = swap.spill()->folder;
  attrs.spill_window = swap.spill()->bytes_in_memory;
}
inline bool has_policy(const Checkpoint& checkpoint, const SwapMemory& swap) {
  return !checkpoint.keeps_all() || swap.spill();
}

}  // namespace reel
