// trace/passes/pipeline.h — the passes that every recorded graph goes through, in order.
#pragma once

#include "reel/core/graph.h"
#include "reel/core/passes.h"

namespace reel {

struct Optimised {
  Ref<Graph> graph;
  std::vector<int> kept_captures;  ///< those of the graph before that are read
};

/// fold_constants, merge_equal, invariant_carries, forwarded_outputs, join_loops and drop_dead
/// until nothing changes: what a graph and its reversals are made from. Verified after each pass in
/// debug builds. No switch of Passes leaves it out where a function is recorded.
Optimised optimise(Ref<Graph> graph);
/// With all its captures.
Optimised as_it_is(Ref<Graph> graph);

// What executors run. Reversals are not made from these: a gradient would add up in another order.

/// hoist_invariants, then optimise(): the same bits.
Optimised optimise_for_interpreter(const Graph& graph);
/// The same results up to rounding. In this order, each by its switch in Passes where one is named:
///
///   inline_checkpointed, saved_of_ended
///   hoist_once, hoist_all_invariants       hoist_invariants
///   multiply_tables                        multiply_tables
///   constant_slices                        batch_over_time
///   split_loops                            batch_over_time and split_loops
///   chunk_loops                            batch_over_time and chunk_loops
///   split_loops again, of what chunks hold the same and split_loops
///   feed_chunks                            batch_over_time and chunk_loops
///   batch_over_time                        batch_over_time
///   constant_slices
///   optimise(), once more                  simplify: of what was recorded, it is done already
///   pack_weights                           pack_weights
///   fuse_pointwise                         fuse_pointwise
///   adjoin_loops                           batch_over_time, chunk_loops and adjoin_loops
///
/// The other switches are of Plan and LoopPlan.
Optimised optimise_for_plan(const Graph& graph, const Passes& passes);

}  // namespace reel
