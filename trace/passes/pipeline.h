// trace/passes/pipeline.h — the passes that every recorded graph goes through, in their order.
#pragma once

#include "reel/core/graph/graph.h"
#include "reel/core/options/passes.h"

namespace reel {

struct Optimised {
  Ref<Graph> graph;
  std::vector<int> kept_captures;  ///< indices of the previous graph's captures that are read
};

/// Repeats fold_constants, merge_equal, capture_invariant_carries, forward_outputs, join_loops and
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
///   inline_checkpointed, relax_finished_residuals
///   hoist_once, hoist_all_invariants       hoist_invariants
///   hoist_embedding_products                        hoist_embedding_products
///   capture_constant_slices                        batch_across_iterations
///   split_loops                            batch_across_iterations and split_loops
///   chunk_loops                            batch_across_iterations and chunk_loops
///   split_loops again, inside chunks       batch_across_iterations, chunk_loops and split_loops
///   feed_chunks                            batch_across_iterations and chunk_loops
///   batch_across_iterations                        batch_across_iterations
///   capture_constant_slices
///   optimise(), once more                  simplify
///   pack_weights                           pack_weights
///   fuse_pointwise                         fuse_pointwise
///   group_pipelined_loops                           batch_across_iterations, chunk_loops and
///   group_pipelined_loops sink_updates
///
/// Plan and LoopPlan read the other switches.
Optimised optimise_for_plan(const Graph& graph, const Passes& passes);

}  // namespace reel
