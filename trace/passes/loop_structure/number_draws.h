// trace/passes/loop_structure/number_draws.h — makes random draws take the numbers of rows.
#pragma once

#include "reel/core/graph/graph.h"

namespace reel {

/// Adds two captures to the graph, the number of each row and the number of rows, which random
/// draws with rows then read. Rows that change places take their numbers along (row_order.h).
///
///   Before: x = random_uniform(key){f32[batch,8]}
///   After:  x = draw_rows(key, numbers, count){f32[batch,8], axis=0}
///
/// Preserves: bits, if the rows have their own numbers.   Runs: before all other passes.
/// Skips: draws in branches and checkpointed functions, and types that only a run knows.
/// Returns null if there is no such draw.
///
/// rows: a named dim, as the graph names it.
Ref<Graph> number_draws(const Graph& graph, const Dim& rows);

}  // namespace reel
