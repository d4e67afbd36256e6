// trace/executors/plan/joined_blocks.h — JoinedBlocks, blocks of rows that run as one.
#pragma once

#include <memory>
#include <vector>

#include "reel/trace/executors/plan/loop_run.h"
#include "reel/trace/executors/plan/row_cut.h"

namespace reel {

/// All rows of a loop that could run in blocks (RowCut::can_join), in one run: sums over rows are
/// taken block by block in every step, and added up behind the last one, as blocks do it.
class JoinedBlocks {
 public:
  /// Plans it -> false where that cannot be done.
  bool make(const PlannedLoop& whole, const RowCut& cut);
  /// in, out: those of the op; outputs have their places already.
  void run(OpInputs in, std::span<Tensor> out);

 private:
  struct Sum {
    std::size_t output;
    Tensor all;      ///< of each block
    Tensors blocks;  ///< those
  };

  std::unique_ptr<PlannedLoop> loop_;
  std::vector<Sum> sums_;
  Tensors outputs_;
};

}  // namespace reel
