// trace/passes/invariant_carries.h — the pass that finds out what a loop does not change.
#pragma once

#include "reel/core/graph.h"

namespace reel {

/// A carry that the body hands on as it came is a capture: it costs nothing per iteration, and is
/// not saved.
///
///   loop carries (%i, %n): return %i + 1, %n               becomes      loop carries (%i),
///   captures (%n): return %i + 1
///
/// Stands after merge_equal (which shows more values to be the same) and before drop_dead (which
/// clears up).
Ref<Graph> invariant_carries(const Graph& graph);

}  // namespace reel
