// trace/passes/feed_chunks.h — the pass that makes what a loop in chunks reads chunk by chunk.
#pragma once

#include "reel/core/graph.h"

namespace reel {

/// What is element-wise, along the dim of a loop's steps, and read by a loop in chunks alone, as
/// its slices, is computed in the loop, for the steps of a chunk:
///
///   %1 = mul(%x, %y); loop over chunks of %1      becomes      loop over chunks of %x, %y:
///                                                                %1 = mul(%x, %y)
///
/// so that there never is all of it: the cotangent of what a loss takes of every step. Same
/// results. Named operands may lack dims; those that lack the one of the steps become captures.
/// Behind chunk_loops.
Ref<Graph> feed_chunks(const Graph& graph);

}  // namespace reel
