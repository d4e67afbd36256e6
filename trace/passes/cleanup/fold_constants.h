// trace/passes/cleanup/fold_constants.h — computes ops on constants when a graph is made.
#pragma once

#include "reel/core/base/visibility.h"
#include "reel/core/graph/graph.h"

namespace reel {

/// Replaces ops on constants by their result, in bodies and branches too.
///
///   Before: %1 = full() {2}; %2 = full() {3}; %3 = mul(%1, %2)
///   After:  %3 = full() {6}
///
/// Uses the eager kernels, so that bits are equal. If an op would throw, it stays and throws if it
/// runs.
/// Throws MemoryError if memory runs out while computing.
/// Preserves: bits.   Runs: in optimise(), first in each round.
/// Skips: results of unknown size, of more than 1,024 elements, or larger than every operand. The
/// op that makes such a result takes less memory than the result.
REEL_API Ref<Graph> fold_constants(const Graph& graph);

}  // namespace reel
