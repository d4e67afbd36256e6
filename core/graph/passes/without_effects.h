// core/graph/passes/without_effects.h — removes effects from a graph that runs again.
#pragma once

#include "reel/core/graph/graph.h"

namespace reel {

/// Replaces the results of ops with an effect by their inputs, also in bodies and branches: a
/// recomputation must not print again. Collectives stay, since a recomputation needs their results:
/// all ranks run them again, in the same order.
///
///   Before: %1 = print(%0); %2 = exp(%1)
///   After:  %2 = exp(%0)
///
/// Preserves: bits.
Ref<Graph> without_effects(const Graph& graph);

}  // namespace reel
