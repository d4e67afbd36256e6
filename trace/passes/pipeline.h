// trace/passes/pipeline.h — the passes that every recorded graph goes through, in their order.
#pragma once

#include "reel/core/graph/graph.h"
#include "reel/core/options/passes.h"

namespace reel {

struct Optimised {
  Ref<Graph> graph;
  std::vector<int> kept_captures;  ///< indices of the previous graph's captures that are read
};

/// Repeats fold_constants, merge_equal, invariant_carries, forwarded_outputs, join_loops and
/// drop_dead until nothing changes. Graphs, and the gradients derived from them, are made from the
/// result. Debug builds verify the graph after each pass. Recording always runs these passes,
/// whatever Passes says.
Optimised optimise(Ref<Graph> graph);
/// Returns the graph unchanged, with all its captures.
Optimised as_it_is(Ref<Graph> graph);

// Passes for executors. Gradients are not derived from their results, as they would add up in
// another order.

/// Runs hoist_invariants, then optimise(). Preserves: bits.
Optimised optimise_for_interpreter(const Graph& graph);
/// Prepares a graph for a plan. Preserves: results up to rounding.
///
/// Passes in their order, and the switches of Passes that they need:
///
///   inline_checkpointed, saved_of_ended
///   hoist_once, hoist_all_invariants       hoist_invariants
///   multiply_tables                        multiply_tables
///   constant_slices                        batch_over_time
///   split_loops                            batch_over_time and split_loops
///   chunk_loops                            batch_over_time and chunk_loops
///   split_loops again, inside chunks       batch_over_time, chunk_loops and split_loops
///   feed_chunks                            batch_over_time and chunk_loops
///   batch_over_time                        batch_over_time
///   constant_slices
///   optimise(), once more                  simplify
///   pack_weights                           pack_weights
///   fuse_pointwise                         fuse_pointwise
///   adjoin_loops                           batch_over_time, chunk_loops and adjoin_loops
///   sink_updates
///
/// Plan and LoopPlan read the other switches.
Optimised optimise_for_plan(const Graph& graph, const Passes& passes);

}  // namespace reel
