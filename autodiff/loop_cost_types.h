// autodiff/loop_cost_types.h — the types from which the chunk size of a loop's gradient is chosen.
#pragma once

#include <vector>

#include "reel/autodiff/loop_application.h"

namespace reel {

/// Returns LoopChunking::cost_types of the loop's gradient. They are the same under every policy
/// and saving rule, and with checkpointed functions.
///
/// reversed: the body as the gradient runs it. is_full: TripCount::is_full of the gradient; without
/// it, there are no chunks, and the result is empty unless the loop itself has cost types.
std::vector<TensorType> gradient_cost_types(LoopApplication& loop, const ReversedGraph& reversed,
                                            bool is_full);

}  // namespace reel
