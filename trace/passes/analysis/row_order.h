// trace/passes/analysis/row_order.h — RowOrder: the rows of a graph that may change places.
#pragma once

#include <optional>
#include <vector>

#include "reel/core/graph/graph.h"

namespace reel {

/// Rows along one dim that may change places. If they do in all inputs, they do in all outputs.
/// Sums over rows then change by rounding, and no other value changes.
struct RowOrder {
  Dim rows;                          ///< as the graph names it
  std::vector<int> inputs, outputs;  ///< the axis of the rows of each; -1 if it has none
  /// A ragged dim with a length for each row, along which loops run until each row ends.
  struct Lengths {
    Dim dim;
    int leaves = 0;  ///< values with rows that iterations of these loops read and write
  };
  std::vector<Lengths> lengths;
};

/// Returns true for the rows, and for a dim with lengths over them or over such a dim.
bool depends_on_rows(const Dim& dim, const Dim& rows);

/// Returns the rows of loops with entries that finish one by one. Returns nothing if there are
/// none, if an op depends on their order, or if all inputs and outputs with rows are not much less
/// than the values that loops read and write: then it does not pay to change places.
///
/// any: for tests: as if it always paid.
std::optional<RowOrder> find_row_order(const Graph& graph, bool any = false);

/// Returns the dim of the rows of the first loop with entries that finish one by one, or nothing
/// if there is none.
std::optional<Dim> rows_of_loops(const Graph& graph);

/// Returns the first op that depends on the order of these rows, if an output depends on it;
/// otherwise null.
const Op* op_on_order_of_rows(const Graph& graph);

}  // namespace reel
