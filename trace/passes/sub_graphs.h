// trace/passes/sub_graphs.h — applying a pass on loops inside of loops and branches.
#pragma once

#include "reel/core/graph.h"

namespace reel {

/// The attributes of a record after a pass over its body or branches, where there are loops in
/// them; otherwise they stay as they are. The pass changes nothing but loops, and keeps inputs and
/// outputs of a graph in their places.
AttrsRef with_sub_graphs(const OpRecord& record, Ref<Graph> (*pass)(const Graph&));

}  // namespace reel
