// trace/passes/batch_over_time.h — the pass that does for all steps at once what need not wait.
#pragma once

#include "reel/core/graph.h"
#include "reel/trace/passes/pack_weights.h"

namespace reel {

/// What a loop's body computes from slices and captures alone goes before the loop, what feeds only
/// stacks and sums goes after it, each as one op over all steps; what depends on captures alone
/// goes before the loop once.
///
///   loop over x: h' = tanh(x·w + h·r); stack h'·v          becomes      y = x·w over all steps;
///   loop over y: h' = tanh(y + h·r); stack h'; then z = h'·v over all steps
///
/// A weight's gradient, a sum of products over steps, becomes one product. Only loops whose length
/// is that of a known dim, and whose entries all run to the end. What is hoisted is computed, and
/// may throw, even where the loop runs zero times: run_plan then asks the interpreter. Sums are
/// taken in another order than step by step: results differ from the interpreter's by rounding.
/// Stands after optimise(), which clears up behind it. packs: of pack_weights, behind it.
Ref<Graph> batch_over_time(const Graph& graph, Packs packs = Packs::large);

/// The part of it that puts before a loop what depends on captures alone.
Ref<Graph> hoist_once(const Graph& graph);

}  // namespace reel
