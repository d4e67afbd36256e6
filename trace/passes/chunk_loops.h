// trace/passes/chunk_loops.h — the pass that has long loops run some steps at a time.
#pragma once

#include "reel/core/graph.h"

namespace reel {

/// A loop from which batch_over_time takes something out becomes a loop in chunks, in whose body it
/// runs over the steps of a chunk:
///
///   loop over 1000 steps of x          becomes          loop over chunks of 50 steps of x:
///                                                         loop over the 50 steps
///
/// so that what goes before and after the loop is done chunk by chunk: it takes memory for a chunk
/// only, lies in the cache when it is read, and what reads what a loop stacks need not wait for all
/// of it. So does one of which nothing can be taken out, where another loop takes the steps that it
/// stacks in the same order: adjoin_loops then lets both run beside each other; and one whose
/// products or sums would go otherwise under a policy than without (must_have_chunks). Those of one
/// chunk stay as they are, but inside of loops and under policies. Entries that end one by one do
/// so in the loop inside, which takes the lengths from a capture and runs along a dim that is
/// ragged, too:
///
///   loop over time[batch], lengths     becomes     loop over chunks of it:
///                                                    loop over chunk[batch], lengths
///
/// Along a plain dim, whose size types tell, chunks are equal where the size has a divisor that is
/// not much smaller than a chunk should be; else the body has a size that a run knows. Stands
/// before batch_over_time().
///
/// steps: of a chunk, and all loops that can be run in chunks, then; 0: chosen from the size of the
/// second cache, when the loop is planned.
Ref<Graph> chunk_loops(const Graph& graph, int steps);

}  // namespace reel
