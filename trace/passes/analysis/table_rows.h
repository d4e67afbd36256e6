// trace/passes/analysis/table_rows.h — TableRowAccess, slices and stacks of table rows by index.
#pragma once

#include <optional>
#include <vector>

#include "reel/core/graph/graph.h"
#include "reel/core/ops/indexing/index.h"

namespace reel {

/// Whole rows of a table, or updates of whole rows, by index: the common part of gather and
/// scatter_add. Axis a of the rows is axis order[a] of the indices; the columns come last.
struct TableRowAccess {
  ValueId table, indices;
  std::vector<int> order;
  const GatherAttrs* attrs;  ///< owned by a record of the graph
};

/// Finds gathers and scatter_adds of table rows that can move into a loop. Skips them if something
/// is printed between them and the loop: an index out of range must still be reported first.
class FindTableRows {
 public:
  explicit FindTableRows(const Graph& graph);

  /// Returns the table rows that the loop, record `loop`, slices; nothing if the slices are no
  /// table rows.
  std::optional<TableRowAccess> gathered(ValueId slices, std::size_t loop) const;

  struct Scattered {
    TableRowAccess rows;
    std::size_t record;  ///< the scatter_add
  };
  /// Returns the scatter_add to zeros that is the only reader of a loop's stack, if its indices
  /// exist before the loop.
  std::optional<Scattered> scattered(ValueId stack, std::size_t loop) const;

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};  ///< no record: an input or output

  const OpRecord* made_by(ValueId v) const;
  bool is_made_before(ValueId v, std::size_t record) const;
  ValueId through_transpositions(ValueId v, std::vector<int>& order) const;
  std::optional<TableRowAccess> rows_of(const OpRecord& record, std::vector<int> order) const;
  bool prints_between(std::size_t first, std::size_t last) const;

  const Graph& graph_;
  std::vector<std::size_t> maker_;                 ///< by value, the record; kNone for inputs
  std::vector<std::vector<std::size_t>> readers_;  ///< by value, records; kNone for outputs
};

}  // namespace reel
