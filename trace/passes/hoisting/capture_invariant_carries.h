// trace/passes/hoisting/capture_invariant_carries.h — turns carries that no iteration changes into
// captures.
#pragma once

#include "reel/core/graph/graph.h"

namespace reel {

/// Turns carries that the body returns unchanged into captures, which cost nothing per iteration
/// and are not saved as residuals.
///
///   Before: loop carries (%i, %n): return %i + 1, %n
///   After:  loop carries (%i), captures (%n): return %i + 1
///
/// Preserves: bits.   Runs: behind merge_equal, which makes more values equal, and before
/// drop_dead, which removes leftovers.
Ref<Graph> capture_invariant_carries(const Graph& graph);

}  // namespace reel
