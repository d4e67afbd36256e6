// trace/passes/hoisting/capture_constant_slices.h — replaces slices that are equal in every
// iteration by captures.
#pragma once

#include "reel/core/graph/graph.h"

namespace reel {

/// Replaces slices of a stack by a capture if another loop stacked a capture, so that all elements
/// are the same value.
///
///   Before: _, us = loop(u): h' = h·u; stack u      loop over us: g' = g·uᵀ
///   After:  loop(u): h' = h·u                       loop(u): g' = g·uᵀ
///
/// Preserves: bits.   Runs: before split_loops, and behind batch_across_iterations, which moves ops
/// on captures out of loops; then optimise() drops the stack.
Ref<Graph> capture_constant_slices(const Graph& graph);

}  // namespace reel
