// trace/passes/fusion/fuse_pointwise.h — fuses element-wise ops into single ops that run tile by
// tile.
#pragma once

#include "reel/core/graph/graph.h"

namespace reel {

/// Groups element-wise ops on tensors of one size into an op `fused` if they read each other's
/// results or the same elements. A plan runs the group tile by tile. Also fuses in bodies and
/// branches.
///
///   Before: %4 = add(%0, %1); %5 = sigmoid(%4); %6 = mul(%5, %2)
///   After:  %6 = fused(%0, %1, %2)
///             body: %3 = add(%0, %1); %4 = sigmoid(%3); %5 = mul(%4, %2); return %5
///
/// Groups also include splits into parts of their size, concats of parts, and repetitions (spread,
/// expand) that they read. They include sums over rows of up to 2,048 elements and ops on such
/// sums: layer normalisation is one op. They include linear recurrences of at least eight channels
/// which begin at the same end, with the ops that make their operands and read their states.
///
/// Preserves: bits.   Runs: behind all passes that do not know `fused`.
Ref<Graph> fuse_pointwise(const Graph& graph);

}  // namespace reel
