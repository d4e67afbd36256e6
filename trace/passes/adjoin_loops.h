// trace/passes/adjoin_loops.h — the pass that puts loops in chunks which can run beside each other
// next to each other.
#pragma once

#include <span>

#include "reel/core/graph.h"

namespace reel {

/// Whether a loop in chunks can run while those before it do, a chunk behind: of what they give it
/// reads nothing but slices of what they stack. Records of a graph, by number.
bool can_run_beside(const Graph& graph, std::span<const std::size_t> loops, std::size_t next);

/// What stands between a loop in chunks and one that can run beside it goes before both, or behind
/// them where it waits for the first:
///
///   h = loop; a = zeros; s = sum(h); y = loop over h      becomes      a; h = loop; y = loop; s
///
/// Graphs with effects stay as they are, and loops apart between which a dim is mentioned that is
/// born in the graph.
Ref<Graph> adjoin_loops(const Graph& graph);

}  // namespace reel
