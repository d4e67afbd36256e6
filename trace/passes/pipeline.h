// trace/passes/pipeline.h — the passes that every recorded graph goes through, in order.
#pragma once

#include "reel/core/graph.h"

namespace reel {

/// merge_equal, invariant_carries, forwarded_outputs, join_loops, hoist_invariants and drop_dead
/// until nothing changes; captures that nobody reads any more are removed from `captured` as well.
/// Verified after each pass in debug builds.
Ref<Graph> optimise(Ref<Graph> graph, Tensors& captured);

}  // namespace reel
