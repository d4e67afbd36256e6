// trace/passes/pipeline.h — the passes that every recorded graph goes through, in their order.
#pragma once

#include "reel/core/graph/graph.h"
#include "reel/core/options/passes.h"

namespace reel {

struct Optimised {
  Ref<Graph> graph;
  std::vector<int> kept_captures;  ///< indices of the previous graph's captures that are read
};

/// Repeats the passes that keep all bits, from fold_constants to drop_dead, until nothing changes.
/// Graphs, and the gradients derived from them, are made from the result. Debug builds verify the
/// graph after each pass. Recording always runs these passes, whatever Passes says.
Optimised optimise(Ref<Graph> graph);
/// Returns the graph unchanged, with all its captures.
Optimised as_it_is(Ref<Graph> graph);

// Passes for executors. Gradients are not derived from their results, as they would add up in
// another order.

/// Runs hoist_invariants, then optimise(). Preserves: bits.
Optimised optimise_for_interpreter(const Graph& graph);
/// Prepares a graph for a plan. pipeline.cpp lists the passes in their order, with the switch of
/// Passes that each needs; Plan and LoopPlan read the other switches.
///
/// Preserves: results up to rounding.
Optimised optimise_for_plan(const Graph& graph, const Passes& passes);

}  // namespace reel
