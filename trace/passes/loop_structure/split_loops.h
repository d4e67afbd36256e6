// trace/passes/loop_structure/split_loops.h — splits a loop over several layers into one loop per
// layer.
#pragma once

#include "reel/core/graph/graph.h"

namespace reel {

/// Splits a loop over several recurrences, such as stacked layers of cells that one body runs
/// together. Each recurrence becomes a loop; later loops slice the stacks of earlier loops.
///
///   Before: loop over x: a' = f(a, x); b' = g(b, a')
///   After:  loop over x: a' = f(a, x); stack a'
///           loop over a: b' = g(b, a)
///
/// The second loop's ops on the first one's results can then run for many time steps at once
/// (batch_across_iterations), and both loops can overlap (group_pipelined_loops).
///
/// Only recurrences with a product start a new layer; other carries stay with those they depend on.
/// Records are placed so that small values cross between layers: forwards h, backwards the gradient
/// of h and not the gradient of the gates.
///
/// A loop under a memory policy, or that reads recomputed residuals, is not split, as its
/// checkpoints cover all layers. Its chunks are split when the pass runs again behind chunk_loops.
/// They are as long as the chunks of its layers without a policy, so that bits are equal.
///
/// Preserves: bits.   Runs: before chunk_loops, and again behind it.
/// Skips: loops for which divisible_loop_time_of() finds no dim; loops with effects, with entries
/// that finish one by one, or with fewer than two carries; lists as carries or sums.
Ref<Graph> split_loops(const Graph& graph);

}  // namespace reel
