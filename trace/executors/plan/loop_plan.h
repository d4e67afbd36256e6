// trace/executors/plan/loop_plan.h — LoopPlan: a loop with plans for its body and condition.
#pragma once

#include <vector>

#include "reel/trace/executors/plan/loop/planned_loop.h"
#include "reel/trace/executors/plan/row_blocks/loop_blocks.h"

namespace reel {

/// Runs one loop, and plans it again whenever sizes change: in row blocks if it can be cut
/// (row_cut.h), otherwise as a whole. The interpreter runs it if carries change their sizes. A loop
/// whose entries finish one by one has no plan of the whole if it runs in row blocks.
class LoopPlan {
 public:
  /// context: its children belong to PlannedLoop, then one to each row block.
  explicit LoopPlan(const PlanContext& context) : whole_(context) {}

  /// Runs the loop. in, out: inputs and outputs of the op. Defined outputs are written; undefined
  /// ones are set.
  void run(const AttrsRef& attrs, OpInputs in, std::span<Tensor> out);
  /// Begins a run of a chunked loop that is to be pipelined with others (wavefront.h). Returns null
  /// if the loop can only run alone.
  std::unique_ptr<LoopRun> begin(const AttrsRef& attrs, OpInputs in, std::span<Tensor> out);
  /// Must be called before the next run if the plan around has other sizes. Until then, explain()
  /// says that there is no plan.
  void forget_call() {
    attrs_ = AttrsRef();
    is_planned_ = false;
  }
  std::int64_t held_bytes() const { return whole_.held_bytes() + blocks_.held_bytes(); }
  /// Returns the number of row blocks; 0 if the loop runs as a whole.
  std::size_t blocks() const { return blocks_.count(); }
  /// Returns the number of row blocks of the inner loop of a chunked loop. Requires that it was
  /// prepared.
  std::size_t blocks_inside() const;

 private:
  friend class PlanView;
  bool prepare(const AttrsRef& attrs, OpInputs in);
  bool try_plan_whole(const AttrsRef& attrs);

  AttrsRef attrs_;
  std::vector<TensorType> given_types_;  ///< of the last run
  std::vector<TensorType> input_types_;  ///< given_types_, with the dims of the body
  bool is_planned_ = false;              ///< as a whole or in row blocks
  bool is_whole_planned_ = false;        ///< for input_types_; otherwise whole_ is bound to them
  PlannedLoop whole_;
  LoopBlocks blocks_;
};

}  // namespace reel
