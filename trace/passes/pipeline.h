// trace/passes/pipeline.h — the passes that every recorded graph goes through, in order.
#pragma once

#include "reel/core/graph.h"
#include "reel/core/passes.h"

namespace reel {

struct Optimised {
  Ref<Graph> graph;
  std::vector<int> kept_captures;  ///< those of the graph before that are read
};

/// merge_equal, invariant_carries, forwarded_outputs, join_loops and drop_dead until nothing
/// changes: what a graph and its reversals are made from. Verified after each pass in debug builds.
Optimised optimise(Ref<Graph> graph);
/// With all its captures.
Optimised as_it_is(Ref<Graph> graph);

// What executors run. Reversals are not made from these: a gradient would add up in another order.

/// With hoist_invariants: the same bits.
Optimised optimise_for_interpreter(const Graph& graph);
/// With batch_over_time, pack_weights and, last, fuse_pointwise: the same results up to rounding.
Optimised optimise_for_plan(const Graph& graph, const Passes& passes);

}  // namespace reel
