// trace/passes/pipeline.h — the passes that every recorded graph goes through, in their order.
#pragma once

#include "reel/core/graph/graph.h"
#include "reel/core/options/passes.h"

namespace reel {

/// A graph after passes.
struct Optimised {
  Ref<Graph> graph;
  std::vector<int> kept_captures;  ///< indices of the previous graph's captures that are read
};

/// Simplifies a recorded graph: repeats the passes from fold_constants to drop_dead until nothing
/// changes. Executors run the result, and gradients are derived from it. Builds with assertions
/// verify the graph after each pass. Runs after each recording by jit; no switch of Passes turns it
/// off. Graphs of TracedFunction::Form::as_recorded stay as they are.
///
/// Preserves: bits.
Optimised optimise(Ref<Graph> graph);
/// Returns the graph unchanged, with all its captures.
Optimised as_it_is(Ref<Graph> graph);

// Passes for one executor each. Gradients are not derived from their results: their sums would have
// another order, and other bits.

/// Runs hoist_invariants, then optimise(). Preserves: bits.
Optimised optimise_for_interpreter(const Graph& graph);
/// Prepares a graph for a plan. pipeline.cpp lists the passes in their order, with the switch of
/// Passes that each needs; Plan and LoopPlan read the other switches.
///
/// Preserves: results up to rounding.
Optimised optimise_for_plan(const Graph& graph, const Passes& passes);

}  // namespace reel
