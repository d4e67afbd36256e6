// trace/passes/drop_dead.h — the pass that removes what nobody needs.
#pragma once

#include "reel/core/graph.h"

namespace reel {

/// Drops records without an effect whose outputs are not read; inside loops also carries, slices,
/// captures, stacks and sums that nobody reads, to a fixpoint (a ring of carries that feed only
/// each other goes too).
///
///   %1 = exp(%0); %2 = mul(%0, %0); return %2              becomes      %2 = mul(%0, %0); return
///   %2
///
/// Formal inputs of the graph stay; captures that are not read any more are listed in
/// `kept_captures` by what stays. Stands after merge_equal, which makes duplicates dead.
Ref<Graph> drop_dead(const Graph& graph, std::vector<int>* kept_captures = nullptr);

}  // namespace reel
