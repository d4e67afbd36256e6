// trace/passes/table_rows.h — TableRows, what loops slice or stack that are rows of a table by
// index.
#pragma once

#include <optional>
#include <vector>

#include "reel/core/graph.h"
#include "reel/core/ops/index.h"

namespace reel {

/// Whole rows of a table, or updates of whole rows, by index: what gather and scatter_add have in
/// common. Axis a of the rows is axis order[a] of the indices; behind these come the columns.
struct TableRows {
  ValueId table, indices;
  std::vector<int> order;
  const GatherAttrs* attrs;  ///< of a record of the graph
};

/// Finds them in a graph, where they can be taken, or added up, in a loop instead: nothing is
/// printed between the two, so that an index out of range is still found before.
class FindTableRows {
 public:
  explicit FindTableRows(const Graph& graph);

  /// What a loop, record `loop`, slices, if those are rows.
  std::optional<TableRows> gathered(ValueId slices, std::size_t loop) const;

  struct Scattered {
    TableRows rows;
    std::size_t record;  ///< the scatter_add
  };
  /// What a loop stacks, if a scatter_add to zeros is all that reads it, by indices that were there
  /// before the loop.
  std::optional<Scattered> scattered(ValueId stack, std::size_t loop) const;

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};  ///< a record: none, but the graph itself

  const OpRecord* made_by(ValueId v) const;
  bool is_made_before(ValueId v, std::size_t record) const;
  ValueId through_transpositions(ValueId v, std::vector<int>& order) const;
  std::optional<TableRows> rows_of(const OpRecord& record, std::vector<int> order) const;
  bool prints_between(std::size_t first, std::size_t last) const;

  const Graph& graph_;
  std::vector<std::size_t> maker_;                 ///< by value, the record; kNone for inputs
  std::vector<std::vector<std::size_t>> readers_;  ///< by value, records; kNone for outputs
};

}  // namespace reel
