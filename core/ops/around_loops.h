// core/ops/around_loops.h — how large a step is of a loop that has loops inside.
#pragma once

#include <span>
#include <vector>

#include "reel/core/ops/loop.h"

namespace reel {

/// What a step of a loop reads and writes, and what loops inside of it may keep of their steps, by
/// and large: the same whatever policies and rules say of any of them, in the loop and in its
/// gradient, as chunks are chosen by it. Nothing where there are no loops inside, or none that
/// anybody needs. inputs: types of the op's.
std::vector<TensorType> step_around_loops(const LoopAttrs& attrs,
                                          std::span<const TensorType> inputs);
/// Of such a loop, or of its gradient: some loop inside may keep any number of values for a step.
/// Then nothing is done for several of its steps at once.
bool is_step_open(const LoopAttrs& attrs, std::span<const TensorType> inputs);

}  // namespace reel
