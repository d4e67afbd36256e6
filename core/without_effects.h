// core/without_effects.h — a graph as it is run once more.
#pragma once

#include "reel/core/graph.h"

namespace reel {

/// What was printed when a value was first computed is not printed again: ops with an effect give
/// what they were given. In bodies and branches, too.
Ref<Graph> without_effects(const Graph& graph);

}  // namespace reel
