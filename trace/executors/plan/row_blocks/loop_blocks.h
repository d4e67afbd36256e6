// trace/executors/plan/row_blocks/loop_blocks.h — LoopBlocks: a loop that runs in row blocks.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "reel/core/runtime/parallel.h"
#include "reel/trace/executors/plan/loop/loop_run.h"
#include "reel/trace/executors/plan/loop/row_cut.h"
#include "reel/trace/executors/plan/row_blocks/joined_blocks.h"
#include "reel/trace/executors/plan/row_blocks/shrinking_block.h"
#include "reel/trace/passes/rows/body_on_rows.h"

namespace reel {

/// Plans a loop once for each row block (row_cut.h) and runs the blocks on several threads. On one
/// thread, they run as one block if possible, with the same bits. If entries finish one by one,
/// each thread runs a batch of rows that shrinks, if possible, also with the same bits.
class LoopBlocks {
 public:
  /// Plans the row blocks of a loop if it can be cut, unless threads share the elements of its
  /// series. If sizes did not change since the last call, only dims are bound anew. Plans that a
  /// run would not use are left out: of row blocks, if batches shrink in place of them.
  ///
  /// whole: planned, or, if its entries finish one by one, at least bound. in: of the op.
  void make(const PlannedLoop& whole, OpInputs in);
  std::size_t count() const { return blocks_.size(); }
  /// Returns true if there are blocks and all outputs are defined.
  bool can_run(std::span<const Tensor> out) const;
  /// Returns false, and runs nothing, if the loop cannot be planned for its blocks. in, out: of the
  /// op. Requires can_run().
  bool try_run(OpInputs in, std::span<Tensor> out);
  /// Returns the bytes of the sums of row blocks, and of those that run as one.
  std::int64_t sum_bytes() const;
  std::int64_t held_bytes() const;

 private:
  friend class PlanView;
  /// The body of the loop as blocks run it.
  struct Body {
    GraphRef whole;
    std::vector<int> axes;          ///< the row axes of its values
    BodyOnRows row_body;            ///< shared by all blocks
    LoopAttrs loop;                 ///< on row_body
    std::vector<TensorType> types;  ///< of the inputs of `loop`, with all rows
  };

  // The body and dims of blocks.
  void bind(const std::optional<RowCut>& before);
  Body compute_body(BodyOnRows row_body) const;
  bool has_types_of(const Body& old, const RowCut& cut_of_old) const;
  bool can_keep_block_dims() const;
  Dims compute_extents() const;

  /// Plans the loop for `rows` rows. block: null, or planned for other dims. Returns false if it
  /// cannot be planned.
  bool try_plan(std::unique_ptr<PlannedLoop>& block, std::int64_t rows, std::size_t profile);
  std::vector<TensorType> input_types_of_block(const Dim& block_dim,
                                               const DimChanges& changes) const;
  bool has_outputs_of_rows(const PlannedLoop& block, const Dim& block_dim,
                           const DimChanges& changes) const;
  const Dim& block_dim_of(std::int64_t rows);
  bool ends() const { return whole_->loop().has_entries(); }
  /// Returns true if each thread runs one block or batch; these are planned at the first such run.
  bool runs_joined() const { return is_joined_ && joined_threads_ == threads(); }
  void plan_joined(OpInputs in);
  /// Returns try_plan() for the sizes of a batch.
  ShrinkingBlock::PlanRows planner(std::size_t batch);
  /// Returns false if a batch cannot be planned.
  bool try_plan_batches();
  double price_of_plan(const PlannedLoop* block, std::int64_t rows);
  std::int64_t batch_count() const;
  /// Returns false, and runs nothing, if planning fails.
  bool try_run_batches(OpInputs in, std::span<Tensor> out);
  bool is_first_of_its_size(std::size_t block) const;
  /// Plans the first block of each size. Returns false if one of them cannot be planned.
  bool try_plan_sizes();
  /// Plans all row blocks. Returns false if the blocks of some size cannot be planned.
  bool try_plan_all();
  bool is_bound(const PlannedLoop& block, const Dim& block_dim, const DimChanges& changes) const;
  void make_partial_sums();
  std::int64_t partial_sum_bytes() const;

  const PlannedLoop* whole_ = nullptr;
  std::optional<RowCut> cut_;
  // Dims in blocks. Dims of an earlier call stay if their names and sizes do, even if the loop's
  // own dims have other lengths: plans are then bound to them already.
  Dims block_dims_;  ///< stand for the rows, one for each number of rows
  Dims extents_;     ///< stand for cut_->ragged
  Body body_;
  std::vector<std::unique_ptr<PlannedLoop>> blocks_;  ///< null: not needed
  bool are_all_planned_ = false;
  std::uint64_t binding_ = 0;  ///< another number whenever blocks get other types than before
  int runs_ = 0;               ///< of batches since then
  std::vector<Tensors> partial_sums_;  ///< by block; the first uses the outputs
  JoinedBlocks joined_;                ///< all rows, planned when first needed
  /// Batches of rows, if rows finish one by one. A run plans the sizes that it uses.
  std::vector<ShrinkingBlock> batches_;
  std::vector<ShrinkingBlock> spare_batches_;  ///< of calls with more batches, the last behind
  int joined_threads_ = 0;  ///< number of threads for which joined_ or batches_ are planned; or 0
  bool in_order_ = false;   ///< batches were planned for rows in the order of their lengths
  bool is_joined_ = false;  ///< one block, or batches, could be planned
};

}  // namespace reel
