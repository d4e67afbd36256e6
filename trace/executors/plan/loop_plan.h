// trace/executors/plan/loop_plan.h — LoopPlan, a loop whose body and condition are plans.
#pragma once

#include <vector>

#include "reel/trace/executors/plan/loop_blocks.h"
#include "reel/trace/executors/plan/planned_loop.h"

namespace reel {

/// Runs one loop, for one set of sizes after the other: in blocks of rows where that can be done
/// (row_cut.h), else as a whole. One whose carries change their sizes is left to the interpreter.
class LoopPlan {
 public:
  /// context: its children are those of PlannedLoop, then one for each block of rows.
  explicit LoopPlan(const PlanContext& context) : whole_(context) {}

  /// in, out: those of the op. Outputs are written where a tensor is given, else set.
  void run(const AttrsRef& attrs, OpInputs in, std::span<Tensor> out);
  /// A run of a loop in chunks that is to go on beside others (wavefront.h); null where it can only
  /// be run alone.
  std::unique_ptr<LoopRun> begin(const AttrsRef& attrs, OpInputs in, std::span<Tensor> out);
  /// In how many blocks of rows it runs; 0: as a whole.
  std::size_t blocks() const { return blocks_.count(); }
  /// The same of the loop inside of one in chunks that has been prepared.
  std::size_t blocks_inside() const;

 private:
  friend class PlanView;
  bool prepare(const AttrsRef& attrs, OpInputs in);

  AttrsRef attrs_;
  std::vector<TensorType> input_types_;
  bool is_planned_ = false;
  PlannedLoop whole_;
  LoopBlocks blocks_;
};

}  // namespace reel
