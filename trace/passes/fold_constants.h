// trace/passes/fold_constants.h — the pass that computes ops on constants alone.
#pragma once

#include "reel/core/graph.h"

namespace reel {

/// What is computed from numbers of the program alone is a constant, in bodies and branches too.
///
///   %1 = full() {2}; %2 = full() {3}; %3 = mul(%1, %2)     becomes      %3 = full() {6}
///
/// Only where the result's sizes are known, and it has few elements, no more than what it is made
/// of: a large one takes less memory as the op that makes it. Computed by the kernels of eager
/// mode, so that the bits are the same; what would throw is left alone, to throw when it runs, if
/// it runs.
Ref<Graph> fold_constants(const Graph& graph);

}  // namespace reel
