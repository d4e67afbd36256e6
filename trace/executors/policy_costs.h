// trace/executors/policy_costs.h — what a loop under a policy takes, foretold.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "reel/core/ops/recall.h"

namespace reel {

/// Bytes of tensors; nothing where those of one are known to a run only.
std::optional<std::int64_t> bytes_of(std::span<const TensorType> types);

/// What a loop under a Checkpoint takes at most, at any time until its gradient is done. -1: only a
/// run tells.
struct PolicyCosts {
  std::int64_t checkpoints = -1;  ///< bytes of states in memory, and of which steps they are
  std::int64_t steps = -1;        ///< that are run again, and in memory, at a time
  std::int64_t bytes = -1;        ///< that these save
  double runs = -1;               ///< of a step, forwards and on the way back, on average
  bool has_arrays =
      false;  ///< in the state, of which `checkpoints` counts no elements that steps made
};
/// inputs, outputs: types of the recall op's. steps: of the loop, where that is known. unit: so
/// many are run at a time; asked: so many are asked for, which a gradient in chunks does for each.
/// Where the number of steps is not known, the bound that the policy itself gives: of a budget half
/// for states and half for steps, or one of each if that is more, and known.
PolicyCosts policy_costs(const RecallAttrs& attrs, std::span<const TensorType> inputs,
                         std::span<const TensorType> outputs, std::optional<std::int64_t> steps,
                         std::int64_t unit, std::int64_t asked);

/// The file for checkpoints of a loop that swaps. Under a budget there is one only where it has
/// less of them in memory than there would be without: it cannot let go of those that are dropped.
class FileOfCheckpoints {
 public:
  /// carries: bytes of each; arrays: of those in the state, which stay in memory.
  FileOfCheckpoints(const LoopAttrs& loop, std::vector<std::int64_t> carries,
                    std::int64_t arrays = 0);
  bool is_used() const;
  /// Bytes of checkpoints in memory at most, when so many have been put there; -1: any number.
  std::int64_t in_memory(std::int64_t puts) const;
  /// Of a budget; 0: none.
  std::int64_t slots() const { return slots_; }

 private:
  const LoopAttrs& loop_;
  std::vector<std::int64_t> carries_;
  std::int64_t state_, slots_;
};

/// Of a stack in a file, the bytes in memory at most: its share of the window in blocks, two at
/// least, and three that are on their way. step_bytes: of a step, or a checkpoint; count: of such,
/// -1 where only a run tells; together: how many are put at a time; asked: how many are asked for
/// at a time, of which there is a copy in the window where they lie in several blocks;
/// is_expected: the loop knows `count` when it begins, and makes room for that. Otherwise room
/// grows: it is up to twice as large as what is there, and while it is copied what it was before is
/// there, too.
std::int64_t spilled_bytes_in_memory(const LoopAttrs& loop, std::int64_t step_bytes,
                                     std::int64_t count, std::int64_t together, std::int64_t asked,
                                     bool is_expected = true);

}  // namespace reel
