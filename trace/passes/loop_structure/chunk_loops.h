// trace/passes/loop_structure/chunk_loops.h — cuts long loops into chunks of time steps.
#pragma once

#include "reel/core/graph/graph.h"

namespace reel {

/// Rewrites loops into chunked loops. The body of a chunked loop runs the original loop over the
/// time steps of one chunk:
///
///   Before: loop over 1000 time steps of x
///   After:  loop over chunks of 50 time steps of x: loop over the 50 time steps
///
/// Ops that batch_across_iterations hoists or sinks then run chunk by chunk. They need memory for
/// one chunk only, and their values are in the cache when they are read. Readers of a stack need
/// not wait for all of it.
///
/// A loop is chunked if at least one condition holds:
/// - batch_across_iterations would move something out of it.
/// - Another loop takes its stacks as slices in the same direction, or it takes another's.
///   group_pipelined_loops then lets both overlap.
/// - Its products or sums would be computed in another order under a memory policy than without one
///   (must_have_chunks in the .cpp).
/// - `steps` is not 0.
///
/// Loops that fit one chunk stay unchanged, except inside loops and under policies.
///
/// If entries finish one by one, they do so in the inner loop. It takes the lengths from a capture,
/// and its dim is ragged, too:
///
///   Before: loop over time[batch], lengths
///   After:  loop over chunks of it: loop over chunk[batch], lengths
///
/// Along a plain dim of a known size, chunks are equal if a divisor of the size is above half of
/// the wanted chunk. Otherwise the chunk's size is a symbol that only a run knows.
///
/// steps: time steps of a chunk; 0 chooses them by the size of the L2 cache when the loop is
/// planned.
/// Preserves: results up to rounding.   Runs: before batch_across_iterations().
Ref<Graph> chunk_loops(const Graph& graph, int steps);

}  // namespace reel
