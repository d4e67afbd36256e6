// trace/passes/constant_slices.h — the pass that captures what every step of another loop stacked
// alike.
#pragma once

#include "reel/core/graph.h"

namespace reel {

/// A loop that runs along a stack of which every slice is the same, because it is a capture of the
/// loop that stacked it, captures that instead.
///
///   _, us = loop(u): h' = h·u; stack u           becomes    loop(u): h' = h·u
///   loop over us:    g' = g·uᵀ                              loop(u): g' = g·uᵀ
///
/// Same results. Stands behind batch_over_time, which takes what depends on captures alone out of
/// loops, and before optimise(), which drops the stack.
Ref<Graph> constant_slices(const Graph& graph);

}  // namespace reel
