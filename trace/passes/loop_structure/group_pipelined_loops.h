// trace/passes/loop_structure/group_pipelined_loops.h — moves chunked loops that can be pipelined
// next to each other.
#pragma once

#include <span>

#include "reel/core/graph/graph.h"

namespace reel {

/// Returns true if the chunked loop `next` can run one chunk behind the chunked loops `loops`: it
/// reads at least one output of theirs, and reads such outputs only as slices of stacks. Also
/// requires the same direction, no effects, no stack in a file, and no recomputed residuals that
/// both read.
///
/// loops, next: indices of records of `graph`.
bool can_run_beside(const Graph& graph, std::span<const std::size_t> loops, std::size_t next);

/// Reorders records so that chunked loops for which can_run_beside() holds stand next to each
/// other. Records between two such loops move before both, or behind both if they depend on the
/// first.
///
///   Before: h = loop; a = zeros; s = sum(h); y = loop over h
///   After:  a = zeros; h = loop; y = loop over h; s = sum(h)
///
/// Preserves: bits.   Runs: behind fuse_pointwise, before sink_updates.
/// Skips: graphs with effects; loops if the second, or a record between the two, mentions a dim
/// that a record of the graph makes.
Ref<Graph> group_pipelined_loops(const Graph& graph);

}  // namespace reel
