// trace/executors/plan/row_blocks/shrinking_block.h — ShrinkingBlock: batch rows that run together
// until they finish.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "reel/trace/executors/plan/loop/planned_loop.h"
#include "reel/trace/executors/plan/loop/row_cut.h"

namespace reel {

/// Runs a batch of rows of a loop on one thread; entries finish one by one. A run begins with all
/// rows and drops rows that have finished; a reverse loop adds rows instead. The bits equal the
/// bits of row blocks. A matrix is read once per iteration for all rows.
class ShrinkingBlock {
 public:
  /// Plans the loop for `rows` rows. loop: null, or planned for other dims. Returns false if it
  /// cannot be planned.
  using PlanRows = std::function<bool(std::unique_ptr<PlannedLoop>& loop, std::int64_t rows)>;
  /// Returns the price of planning a loop for `rows` rows and the dims at hand, in iterations of
  /// one row; 0 if it is planned for them. loop: null if it has no plan yet.
  using PriceOfPlan = std::function<double(const PlannedLoop* loop, std::int64_t rows)>;
  /// Plans the loop for the largest of the sizes of a batch, which are in increasing order. The
  /// others are planned when a run chooses them. Plans for the same numbers of rows are kept.
  /// Returns false if planning fails.
  bool try_plan(const std::vector<std::int64_t>& sizes, const PlanRows& plan);
  /// True if try_plan() succeeded for these sizes.
  bool is_planned(const std::vector<std::int64_t>& sizes) const;
  /// Chooses the sizes with which run() runs the rows of `batch`: a size that few iterations would
  /// use is not planned again for other dims, and its rows run with more rows. Returns false if
  /// planning the size of all rows fails. Requires try_plan().
  bool choose_sizes(const BlockOfRows& batch, const PlanRows& plan, const PriceOfPlan& price);
  /// Returns the loop planned for all rows of the batch. Requires try_plan().
  const PlannedLoop& largest() const { return *sizes_.back().loop; }
  /// whole: the loop's attributes. batch: its rows, in the order of their lengths. in, out: of the
  /// op. is_first: this batch has the longest row of all, and writes the outputs without rows.
  /// Requires defined outputs, and choose_sizes() for this batch.
  void run(const LoopAttrs& whole, const RowCut& cut, const BlockOfRows& batch, OpInputs in,
           std::span<Tensor> out, bool is_first);
  /// Calls fn for the loop of each size that was ever planned.
  template <class Fn>
  void each_loop(const Fn& fn) const {
    for (const Size& size : sizes_)
      if (size.loop) fn(*size.loop);
  }
  std::int64_t held_bytes() const;

 private:
  /// The plan for the `rows` rows that run longest.
  struct Size {
    std::size_t rows = 0;
    std::unique_ptr<PlannedLoop> loop;
    bool is_used = true;  ///< by the run at hand
  };
  /// Consecutive iterations in which the same rows run.
  struct Phase {
    std::size_t size;
    std::int64_t begin, end;  ///< positions
  };
  std::vector<std::size_t> cheapest_sizes(const BlockOfRows& batch, const PriceOfPlan& price) const;
  std::vector<Phase> phases(const BlockOfRows& batch, bool is_reverse) const;

  void take_loops(std::vector<Size>& from);

  std::vector<Size> sizes_;   ///< in increasing order
  bool are_planned_ = false;  ///< try_plan() succeeded
};

}  // namespace reel
