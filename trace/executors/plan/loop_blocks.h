// trace/executors/plan/loop_blocks.h — LoopBlocks, a loop that runs on some rows at a time.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "reel/core/parallel.h"
#include "reel/trace/executors/plan/body_on_rows.h"
#include "reel/trace/executors/plan/joined_blocks.h"
#include "reel/trace/executors/plan/loop_run.h"
#include "reel/trace/executors/plan/row_cut.h"
#include "reel/trace/executors/plan/shrinking_block.h"

namespace reel {

/// A planned loop once more for each block of rows (row_cut.h), several of which run at once; where
/// there is one thread only, as if they were one block, with the same bits.
class LoopBlocks {
 public:
  /// Plans the blocks of a loop where that can be done, and nothing but dims anew where sizes are
  /// those of the call before.
  void make(const PlannedLoop& whole);
  std::size_t count() const { return blocks_.size(); }
  /// Whether there are blocks, and the outputs have their places already.
  bool can_run(std::span<const Tensor> out) const;
  /// in, out: those of the op.
  void run(OpInputs in, std::span<Tensor> out);

 private:
  friend class PlanView;
  /// Plans the loop for so many rows, in a block that is null or was planned for other dims ->
  /// false where that cannot be done.
  bool plan(std::unique_ptr<PlannedLoop>& block, std::int64_t rows, std::size_t profile) const;
  bool ends() const { return !whole_->loop().entry_dims.empty(); }
  /// On one thread, once that has been planned.
  bool runs_joined() const { return is_joined_planned_ && cut_->can_join && threads() == 1; }
  bool plan_joined();
  void find_body();
  void make_partial_sums();

  const PlannedLoop* whole_ = nullptr;
  std::optional<RowCut> cut_;
  struct Body {
    GraphRef whole;
    std::vector<int> axes;  // of its values' rows
    BodyOnRows on_rows;     // that of all blocks
  } body_;
  std::vector<std::unique_ptr<PlannedLoop>> blocks_;
  std::vector<Tensors> partial_sums_;  ///< by block but the first, which has the loop's outputs
  JoinedBlocks joined_;                ///< of all rows, once that was asked for
  ShrinkingBlock shrinking_;           ///< the same where rows end one by one
  bool is_joined_planned_ = false;
};

}  // namespace reel
