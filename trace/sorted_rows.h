// trace/sorted_rows.h — SortedRows: the rows of a call in the order of their lengths.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reel/core/dims/dim_changes.h"
#include "reel/core/types/tensor.h"
#include "reel/trace/executors/plan/plan.h"
#include "reel/trace/passes/analysis/row_order.h"

namespace reel {

/// Lets plans of a graph run on rows in the order of their lengths. A batch that shrinks as its
/// rows end (row_blocks/shrinking_block.h) then reads and writes neighbours in place. In another
/// order, each iteration copies them.
///
///   Before: time[batch] = {2, 3, 1}; x = {a, b, c}; y = {f(a), f(b), f(c)}
///   After:  time[batch] = {3, 2, 1}; x = {b, a, c}; y of the plan = {f(b), f(a), f(c)}
///
/// Preserves: all results, up to rounding of sums over rows.
/// Skips rows that are in order, or fewer than eight; graphs with an op that depends on the order
/// of rows (row_order.h); plans without such a batch.
class SortedRows {
 public:
  /// The order of the rows of one call.
  struct Order {
    DimChanges sorted, back;         ///< to the dims with sorted rows, and back
    std::vector<std::int64_t> rows;  ///< by sorted row, its number in the call
    std::string text;                ///< for explain()
  };

  /// The rows of a graph.
  struct RowsOfGraph {
    Ref<Graph> numbered = {};            ///< with numbered draws; null: there are none
    std::optional<RowOrder> order = {};  ///< with the inputs of `numbered`; none: rows stay
    const Op* kept_by = nullptr;         ///< depends on the order of the rows, which stay
  };
  /// Finds the rows that calls of the graph may sort.
  ///
  /// passes: with block_rows, rows are sorted however few they are.
  static RowsOfGraph rows_of(const Graph& graph, const Passes& passes);

  /// graph: with numbered draws, if there are any. Its plans take the first inputs, then the
  /// captures with these numbers.
  SortedRows(const Graph& graph, const std::vector<int>& captures, RowsOfGraph rows,
             const Passes& passes);

  /// Returns the captures of number_draws(): the number of each row, and the number of rows.
  ///
  /// formal: the graph's first inputs.
  Tensors numbers_of(const Tensors& formal) const;

  /// Returns the order in which a call's rows should run; null if they keep their places.
  /// Thread-safe.
  ///
  /// inputs: of a plan.
  std::shared_ptr<const Order> order_of(const Tensors& inputs);
  /// Returns true if a batch of the plan's loops shrinks as its rows end, and the plan knows the
  /// types of all outputs.
  static bool suits(const Plan& plan);
  /// Returns for explain() which op keeps the rows in their places in all calls; empty if no op
  /// does.
  std::string text() const;

 private:
  friend class RowsOfCall;
  /// Where a call has a dim of the graph: at an axis of an input of the plan.
  struct Place {
    std::size_t input, axis;
  };
  const Dim& dim_at(const Place& place, const Tensors& inputs) const {
    return inputs[place.input].type().dims()[place.axis];
  }
  std::shared_ptr<const Order> make_order(const Tensors& inputs, const Dims& given) const;

  std::optional<RowOrder> order_;  ///< with the inputs of a plan
  const Op* kept_by_ = nullptr;    ///< depends on the order of rows
  std::int64_t least_rows_;
  std::vector<Place> ragged_;   ///< dims that depend on the rows
  Place over_rows_{};           ///< the first of them with lengths over the rows
  int place_of_rows_ = -1;      ///< index of the rows among its length dims
  std::vector<Place> lengths_;  ///< order_->lengths
  std::mutex mutex_;
  // The last call's dims that depend on the rows, and its order.
  Dims last_dims_;
  std::shared_ptr<const Order> last_;
};

/// One call that may run on sorted rows.
class RowsOfCall {
 public:
  explicit RowsOfCall(SortedRows& all) : all_(all) {}

  /// Sorts the rows of the inputs, unless they keep their places. Returns true if it did.
  bool sort(Tensors& inputs);
  /// Puts the first `count` inputs back as they were.
  void restore(Tensors& to, std::size_t count);
  /// Makes room for outputs with sorted rows or dims, so that put_back() cannot fail. Requires
  /// SortedRows::suits().
  void make_outputs(const Plan& plan);
  /// Returns output k with rows and dims as the call has them. Never fails.
  Tensor put_back(std::size_t k, Tensor made);
  /// Sets the elements of the inputs that sort() replaced by copies. by_input: one element for
  /// each formal input.
  void mark_copies(std::vector<std::uint8_t>& by_input) const;
  /// Returns the order for explain(); empty if the rows kept their places.
  std::string text() const { return order_ ? order_->text : std::string(); }

 private:
  SortedRows& all_;
  std::shared_ptr<const SortedRows::Order> order_;
  std::vector<std::pair<std::size_t, Tensor>> given_;  ///< inputs by number
  Tensors outputs_;  ///< by output; undefined if the plan's output is the call's
};

}  // namespace reel
