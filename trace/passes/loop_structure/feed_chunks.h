// trace/passes/loop_structure/feed_chunks.h — computes the slices of chunked loops inside them,
// chunk by chunk.
#pragma once

#include "reel/core/graph/graph.h"

namespace reel {

/// Sinks element-wise ops into chunked loops. A value is computed in a loop's body, for one chunk
/// at a time, if it runs along the loop's dim and is used only once, as slices of this loop.
///
///   Before: %1 = mul(%x, %y); loop over chunks of %1
///   After:  loop over chunks of %x, %y: %1 = mul(%x, %y)
///
/// The whole value, such as the cotangent of a loss over all time steps, is never in memory. Named
/// operands may lack dims; operands that lack the loop's dim become captures.
/// Preserves: bits.   Runs: behind chunk_loops.
/// Skips: bodies and branches. A value along the dim of an inner loop is as large as a step of the
/// outer one, and stays in the cache.
Ref<Graph> feed_chunks(const Graph& graph);

}  // namespace reel
