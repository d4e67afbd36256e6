// trace/passes/hoisting/hoist_invariants.h — hoists loop-invariant ops out of loops.
#pragma once

#include "reel/core/graph/graph.h"

namespace reel {

/// Hoists element-wise ops on captures; the loop captures their results instead.
///
///   Before: loop captures (%b): %1 = sin(%b); ...
///   After:  %1 = sin(%b); loop captures (%1): ...
///
/// A loop and its gradient then share values that both compute (merge_equal). Element-wise ops
/// cannot fail, so hoisting is safe even if no iteration runs. They also give finished entries the
/// values that they would have inside.
///
/// Preserves: bits.   Runs: before optimise(), for the interpreter.
/// Skips: values for which grows_large(); constants; captures that finished entries read otherwise
/// than running ones.
Ref<Graph> hoist_invariants(const Graph& graph);
/// Hoists all loop-invariant ops that fail for no values (fails_for_values), such as products and
/// reductions, if entries do not finish one by one.
///
/// Requires an executor with a fallback: ops can still fail for their sizes, before a loop that
/// runs no iteration.
/// Runs: for a plan, behind hoist_once.
/// Skips: as hoist_invariants().
Ref<Graph> hoist_all_invariants(const Graph& graph);

}  // namespace reel
