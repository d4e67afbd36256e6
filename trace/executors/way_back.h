// trace/executors/way_back.h — how a loop that kept some of its steps is gone back over.
#pragma once

#include <cstdint>
#include <span>

#include "reel/core/ops/recall.h"

namespace reel {

/// Behind one checkpoint, in units: steps, or the chunks in which the loop went.
struct WayBack {
  std::int64_t leaf;   ///< units that are run again, and in memory, at a time
  std::int64_t slots;  ///< for states to run them from, that of the checkpoint itself included
};
/// gap: units behind it; unit_bytes: what one saves; together: how many are asked for at a time.
WayBack way_back(const LoopAttrs& loop, std::int64_t gap, std::int64_t state_bytes,
                 std::int64_t unit_bytes, std::int64_t together);

/// All that the steps of the loop save lies one behind the other, in the order of positions.
/// inputs: types of the recall op's, those of the loop first.
bool saves_in_one_piece(const RecallAttrs& attrs, std::span<const TensorType> inputs);

}  // namespace reel
