// core/ops/control/nested_step_types.h — estimates how much memory a step of a loop with inner
// loops touches.
#pragma once

#include <span>
#include <vector>

#include "reel/core/ops/loop/loop.h"

namespace reel {

/// Estimates the values that one step of a loop reads and writes, together with the residuals that
/// inner loops may save. Chunk sizes are chosen by it, so it ignores policies and saving rules: the
/// loop and its gradient get the same estimate.
///
/// inputs: types of the op's inputs.
/// Returns types; only their bytes count. Returns an empty vector if no inner loop's results are
/// needed.
std::vector<TensorType> nested_step_types(const LoopAttrs& attrs,
                                          std::span<const TensorType> inputs);
/// Returns true if the bytes of a step, also in the gradient, are unbounded, because an inner loop
/// may save any number of values. A loop with unbounded steps never runs in chunks.
bool is_step_open(const LoopAttrs& attrs, std::span<const TensorType> inputs);

}  // namespace reel
