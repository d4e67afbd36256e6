// trace/executors/plan/loop_plan.h — LoopPlan, a loop whose body and condition are plans.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "reel/core/ops/loop.h"
#include "reel/trace/executors/plan/row_cut.h"
#include "reel/trace/executors/plan/sub_plan.h"

namespace reel {

/// Runs one loop: carries lie in two buffers in turn, what an iteration stacks is written into its
/// place, slices are read where they lie.
///
/// A loop whose iterations treat rows each for itself (row_cut.h) runs in blocks of them, several
/// at once. One whose carries change their sizes is left to the interpreter.
class LoopPlan {
 public:
  LoopPlan();
  ~LoopPlan();
  /// in, out: those of the op. Outputs are written where a tensor is given, else set.
  void run(const AttrsRef& attrs, OpInputs in, std::span<Tensor> out);

 private:
  class Run;
  /// Bytes from one step to the next in slices and stacks that hold more rows than the loop.
  struct Pitches {
    std::vector<std::int64_t> slices, stacks;
  };
  /// The loop for some rows.
  struct Block {
    std::unique_ptr<LoopPlan> plan;
    AttrsRef attrs;
    std::vector<TensorType> types;  ///< of the inputs
  };
  struct Carry {
    bool is_list = false;
    std::int64_t bytes = 0, buffers[2] = {};  ///< offsets in memory_
    int stack = -1;  ///< the stack that the same value goes to: it is written there only
  };

  bool prepare(const AttrsRef& attrs, OpInputs in);
  bool find_types(const AttrsRef& attrs);
  void lay_out(const LoopAttrs& attrs);
  void cut(const LoopAttrs& attrs);
  bool make_block(const LoopAttrs& attrs, std::int64_t rows);
  void run_blocks(OpInputs in, std::span<Tensor> out);
  void run_block(std::size_t number, OpInputs in, std::span<Tensor> out);

  SubPlan body_, cond_;
  SubPlan ended_;  ///< the body with the dims that ended entries show
  AttrsRef attrs_;
  std::vector<TensorType> input_types_;
  bool is_planned_ = false;
  std::vector<std::uint8_t> is_block_;  ///< by output of the body
  std::vector<Carry> carries_;
  std::vector<std::int64_t> scratch_;       ///< by output of the body: offset in memory_
  std::vector<std::uint8_t> shares_carry_;  ///< by stack: a carry writes it
  Tensor memory_;
  std::optional<RowCut> cut_;
  std::vector<Block> blocks_;  ///< empty: all rows at once
};

}  // namespace reel
