// trace/passes/cleanup/drop_unread_lists.h — removes lists that no record reads.
#pragma once

#include "reel/core/base/visibility.h"
#include "reel/core/graph/graph.h"

namespace reel {

/// Drops records that make only lists, if neither another record nor an output reads these.
///
///   Before: %1 = list_unstack(%0); %2 = list_write(%1, %0, 0); %3 = sin(%0); return %3
///   After:  %3 = sin(%0); return %3
///
/// Values keep their numbers. Returns the graph itself if there are no such records.
/// Preserves: bits.   Runs: under vmap, before the graph of one row is applied to all rows, since a
/// list that differs between rows refuses the whole function. Other dead records stay: eager mode
/// runs them, too, and they may throw.
/// Skips: records with an effect or with graphs inside. The bodies of these are graphs of their own
/// under vmap.
REEL_API GraphRef drop_unread_lists(const GraphRef& graph);

}  // namespace reel
