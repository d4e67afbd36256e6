// trace/executors/policy_costs.h — what a loop under a policy takes, foretold.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "reel/core/ops/recall.h"

namespace reel {

/// Bytes of tensors; nothing where those of one are known to a run only.
std::optional<std::int64_t> bytes_of(std::span<const TensorType> types);

/// What a loop under a Checkpoint takes at most, at any time until its gradient is done. -1: only a
/// run tells.
struct PolicyCosts {
  std::int64_t checkpoints = -1;  ///< bytes of states, and of which steps they are
  std::int64_t steps = -1;        ///< that are run again, and in memory, at a time
  std::int64_t bytes = -1;        ///< that these save
  double runs = -1;               ///< of a step, forwards and on the way back, on average
};
/// inputs, outputs: types of the recall op's. steps: of the loop, where that is known. unit: so
/// many are run at a time; asked: so many are asked for, which a gradient in chunks does for each.
/// Where the number of steps is not known, the bound that the policy itself gives: of a budget half
/// for states and half for steps, or one of each if that is more, and known.
PolicyCosts policy_costs(const RecallAttrs& attrs, std::span<const TensorType> inputs,
                         std::span<const TensorType> outputs, std::optional<std::int64_t> steps,
                         std::int64_t unit, std::int64_t asked);

/// Of a stack in a file, the bytes in memory at most: its share of the window in blocks, two at
/// least, and three that are on their way. step_bytes: of a step, or a checkpoint; count: of such,
/// -1 where only a run tells; together: how many are put at a time.
std::int64_t spilled_bytes_in_memory(const LoopAttrs& loop, std::int64_t step_bytes,
                                     std::int64_t count, std::int64_t together);

}  // namespace reel
