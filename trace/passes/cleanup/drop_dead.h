// trace/passes/cleanup/drop_dead.h — removes values that no output depends on.
#pragma once

#include "reel/core/base/visibility.h"
#include "reel/core/graph/graph.h"

namespace reel {

/// Drops records without an effect if no output is read. Inside loops it also drops unread carries,
/// slices, captures, stacks and sums, including rings of carries that feed only each other.
/// Branches keep their captures.
///
///   Before: %1 = exp(%0); %2 = mul(%0, %0); return %2
///   After:  %2 = mul(%0, %0); return %2
///
/// Formal inputs of the graph stay. If `kept_captures` is given, captures that are not read are
/// dropped, and the indices of the others are appended to it.
/// Preserves: bits.   Runs: in optimise(), last in each round: earlier passes make duplicates dead.
REEL_API Ref<Graph> drop_dead(const Graph& graph, std::vector<int>* kept_captures = nullptr);

}  // namespace reel
