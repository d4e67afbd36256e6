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
  /// Plans the loop for the sizes of a batch, in increasing order. May be called again for other
  /// dims. Returns false if planning fails.
  bool try_plan(const std::vector<std::int64_t>& sizes, const PlanRows& plan);
  /// Returns the loop planned for all rows of the batch. Requires try_plan().
  const PlannedLoop& largest() const { return *sizes_.back().loop; }
  /// whole: the loop's attributes. batch: its rows, in the order of their lengths. in, out: of the
  /// op. is_first: this batch has the longest row of all, and writes the outputs without rows.
  /// Requires defined outputs.
  void run(const LoopAttrs& whole, const RowCut& cut, const BlockOfRows& batch, OpInputs in,
           std::span<Tensor> out, bool is_first);
  std::int64_t held_bytes() const;

 private:
  /// The plan for the `rows` rows that run longest.
  struct Size {
    std::size_t rows = 0;
    std::unique_ptr<PlannedLoop> loop;
  };
  /// Consecutive iterations in which the same rows run.
  struct Phase {
    std::size_t size;
    std::int64_t begin, end;  ///< positions
  };
  std::int64_t end_of(const BlockOfRows& batch, std::size_t size) const;
  std::vector<Phase> phases(const BlockOfRows& batch, bool is_reverse) const;

  std::vector<Size> sizes_;  ///< in increasing order
};

}  // namespace reel
