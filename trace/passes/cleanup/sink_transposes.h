// trace/passes/cleanup/sink_transposes.h — moves transposes behind ops that need no order of axes.
#pragma once

#include "reel/core/base/visibility.h"
#include "reel/core/graph/graph.h"

namespace reel {

/// Moves transposes behind element-wise ops and largest elements of windows, where they meet the
/// transposes that undo them. A network with channels in front of the positions then keeps the
/// order of its convolutions, which is channels last.
///
///   Before: %2 = transpose(%1) {0,3,1,2}; %3 = relu(%2); %4 = transpose(%3) {0,2,3,1}
///   After:  %5 = relu(%1); %3 = transpose(%5) {0,3,1,2}; %4 = %5
///
/// Leaves transposes without readers behind, which drop_dead() removes. A smaller operand is
/// rearranged to fit; it may have at most a quarter of the result's elements unless a reshape
/// suffices. Returns null unless transposes then make fewer bytes.
/// Preserves: bits.   Runs: behind optimise(), before ops on captures are computed.
/// Skips: named dims and unknown sizes, except for transposes of transposes; bodies and branches;
/// sums, as their order would change.
REEL_API Ref<Graph> sink_transposes(const Graph& graph);

}  // namespace reel
