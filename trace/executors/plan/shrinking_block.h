// trace/executors/plan/shrinking_block.h — ShrinkingBlock, blocks of rows that run as one, as long
// as each has rows that have not ended.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "reel/trace/executors/plan/planned_loop.h"
#include "reel/trace/executors/plan/row_cut.h"

namespace reel {

/// All rows of a loop whose entries end one by one, in one run on one thread: it begins with all
/// blocks and goes on without those that have ended (a reverse loop the other way round), with the
/// bits of blocks that run one after the other. A matrix is read once for all rows of a step.
class ShrinkingBlock {
 public:
  /// Plans the loop for so many rows, in what is null or was planned for other dims -> false where
  /// that cannot be done.
  using PlanRows = std::function<bool(std::unique_ptr<PlannedLoop>& loop, std::int64_t rows)>;
  /// May be called again, for other dims -> the same.
  bool make(const RowCut& cut, const PlanRows& plan);
  /// whole: the loop's attributes. in, out: those of the op; outputs have their places already.
  void run(const LoopAttrs& whole, const RowCut& cut, OpInputs in, std::span<Tensor> out);

 private:
  /// Rows of the first so many blocks, the longest ones.
  struct Size {
    std::size_t blocks = 0;
    std::unique_ptr<PlannedLoop> loop;
  };
  /// Iterations in which as many rows run.
  struct Phase {
    std::size_t size;
    std::int64_t begin, end;  ///< positions
  };
  std::vector<Phase> phases(std::span<const BlockOfRows> blocks, bool is_reverse) const;

  std::vector<Size> sizes_;  ///< rising
};

}  // namespace reel
