// trace/executors/plan/row_blocks/shrinking_block.h — ShrinkingBlock: row blocks that run as one
// until they finish.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "reel/trace/executors/plan/loop/planned_loop.h"
#include "reel/trace/executors/plan/loop/row_cut.h"

namespace reel {

/// Runs all rows of a loop on one thread; entries finish one by one. A run begins with all blocks
/// and drops blocks that have finished; a reverse loop adds blocks instead. The bits equal the bits
/// of blocks that run one after the other. A matrix is read once per iteration for all rows.
class ShrinkingBlock {
 public:
  /// Plans the loop for `rows` rows. loop: null, or planned for other dims. Returns false if it
  /// cannot be planned.
  using PlanRows = std::function<bool(std::unique_ptr<PlannedLoop>& loop, std::int64_t rows)>;
  /// Plans the loop for a few numbers of rows. May be called again for other dims. Returns false if
  /// planning fails.
  bool try_plan(const RowCut& cut, const PlanRows& plan);
  /// whole: the loop's attributes. in, out: of the op. Requires defined outputs.
  void run(const LoopAttrs& whole, const RowCut& cut, OpInputs in, std::span<Tensor> out);

 private:
  /// The plan for the rows of the first `blocks` blocks, which run longest.
  struct Size {
    std::size_t blocks = 0;
    std::unique_ptr<PlannedLoop> loop;
  };
  /// Consecutive iterations in which the same rows run.
  struct Phase {
    std::size_t size;
    std::int64_t begin, end;  ///< positions
  };
  std::vector<Phase> phases(std::span<const BlockOfRows> blocks, bool is_reverse) const;

  std::vector<Size> sizes_;  ///< in increasing order
};

}  // namespace reel
