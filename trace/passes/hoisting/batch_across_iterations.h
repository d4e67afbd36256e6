// trace/passes/hoisting/batch_across_iterations.h — moves ops out of loops, to run once for all
// iterations.
#pragma once

#include "reel/core/graph/graph.h"
#include "reel/trace/passes/hoisting/pack_weights.h"

namespace reel {

/// Moves ops out of loop bodies and applies each once to the values of all time steps:
/// - Ops that read only slices and captures are hoisted.
/// - Ops that feed only stacks and sums are sunk.
/// - Ops that read only captures are hoisted and computed once.
///
///   Before: loop over x: h' = tanh(x·w + h·r); stack h'·v
///   After:  y = x·w over all time steps
///           loop over y: h' = tanh(y + h·r); stack h'
///           z = h'·v over all time steps
///
/// A weight's gradient, a sum of products over time steps, becomes one product.
///
/// packs: the matrices that pack_weights will pack later, on which the order of sums depends.
/// Requires: optimise() runs afterwards and removes leftovers.   Runs: behind feed_chunks.
/// Preserves: results up to rounding; sums are not taken one iteration at a time.
/// Skips: loops for which loop_time_of() finds no dim. The loop must run along a known dim, and
/// entries may finish one by one along at most one dim.
/// Hoisted ops are computed, and may throw, even if the loop runs zero iterations; run_plan then
/// falls back to the interpreter.
Ref<Graph> batch_across_iterations(const Graph& graph, Packs packs = Packs::large);

/// Hoists only the ops that depend on captures alone, as batch_across_iterations does.
Ref<Graph> hoist_once(const Graph& graph);

}  // namespace reel
