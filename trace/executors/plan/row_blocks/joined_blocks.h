// trace/executors/plan/row_blocks/joined_blocks.h — JoinedBlocks: row blocks that run as one.
#pragma once

#include <memory>
#include <vector>

#include "reel/trace/executors/plan/loop/loop_run.h"
#include "reel/trace/executors/plan/loop/row_cut.h"

namespace reel {

/// Runs all rows of a loop that could run in row blocks (RowCut::can_join) at once. Sums over rows
/// are taken block by block in every iteration, and added up after the last one, as separate blocks
/// do.
class JoinedBlocks {
 public:
  /// Plans the loop. Returns false if it cannot be planned.
  bool try_plan(const PlannedLoop& whole, const RowCut& cut);
  /// in, out: of the op. Requires try_plan(), and defined outputs.
  void run(OpInputs in, std::span<Tensor> out);
  /// Calls fn for the loop of all rows if try_plan() was ever called.
  template <class Fn>
  void each_loop(const Fn& fn) const {
    if (loop_) fn(*loop_);
  }
  /// Returns the bytes of the sums of all blocks.
  std::int64_t sum_bytes() const;
  std::int64_t held_bytes() const;

 private:
  struct Sum {
    std::size_t output;
    Tensor all;      ///< of all blocks
    Tensors blocks;  ///< views of `all`, by block
  };

  std::unique_ptr<PlannedLoop> loop_;
  std::vector<Sum> sums_;
  Tensors outputs_;
};

}  // namespace reel
