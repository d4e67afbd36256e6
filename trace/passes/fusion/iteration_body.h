// trace/passes/fusion/iteration_body.h — iteration_body: a fused op and the sums of its loop as one
// graph.
#pragma once

#include <cstddef>
#include <span>

#include "reel/core/graph/graph.h"

namespace reel {

/// Returns the work of one iteration of a loop whose body is one fused op: the op's graph, which
/// also adds the terms of the loop's sums to their totals.
///
///   Before: fused(x, h) {y, z, t};  sum += t
///   After:  (x, h, total) {y, z, total + t}
///
/// results: the numbers of the fused graph's outputs that the iteration returns; a term that is
/// neither a carry nor a stack is not among them. terms: for each sum, the number of the output
/// that is its term. The inputs end with one total for each sum, the outputs with the next totals.
///
/// Preserves: bits of an iteration whose sums have a term each.   Runs: when a plan makes the tile
/// program of a series of iterations.
Ref<Graph> iteration_body(const Graph& fused, std::span<const std::size_t> results,
                          std::span<const std::size_t> terms);

}  // namespace reel
