// trace/passes/loop_structure/rows_first.h — moves the rows of captures to their first axis.
#pragma once

#include "reel/core/graph/graph.h"

namespace reel {

/// Transposes captures that have the rows of the loop's state behind another axis, once and before
/// the loop. Plans cut loops into row blocks only if rows come first
/// (trace/executors/plan/loop/row_cut.h). The outputs of a scan, which attention reads as keys,
/// begin with time.
///
///   Before: loop(…, %k: [time, batch, key]): body(%h; captures %k): dot(%k, %h) {a_batch=[1], …}
///   After:  %t: [batch, time, key] = transpose(%k) {order=[1, 0, 2]}
///           loop(…, %k, %t): body(%h; captures %k, %t): dot(%t, %h) {a_batch=[0], …}
///
/// Preserves: bits, since the axes of each row keep their order.   Runs: behind hoist_once, which
/// makes masked keys captures; before passes that drop unread captures.
/// Skips: captures with other readers than products with a batch dim of rows.
Ref<Graph> rows_first(const Graph& graph);

}  // namespace reel
