// trace/passes/hoist_invariants.h — the pass that takes out of loops what no iteration changes.
#pragma once

#include "reel/core/graph.h"

namespace reel {

/// What is computed from captures alone is computed once, before the loop, and captured.
///
///   loop captures (%b): %1 = sin(%b); ...                  becomes      %1 = sin(%b); loop
///   captures
///   (%1): ...
///
/// Not what grows_large. Only element-wise ops: they cannot fail, so that it does no harm where no
/// iteration runs, and of what ended entries see they make what they would have made inside.
/// Constants stay inside. A loop and its gradient then share what both compute (merge_equal).
Ref<Graph> hoist_invariants(const Graph& graph);
/// The same of products, reductions, and all else that no values make fail (never_fails), where
/// entries do not end one by one: for executors that have another way to a result where sizes make
/// one fail before a loop that does not run.
Ref<Graph> hoist_all_invariants(const Graph& graph);

}  // namespace reel
