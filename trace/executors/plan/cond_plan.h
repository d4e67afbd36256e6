// trace/executors/plan/cond_plan.h — CondPlan: a cond with plans for its branches.
#pragma once

#include <memory>
#include <vector>

#include "reel/core/ops/control/cond.h"
#include "reel/trace/executors/plan/loop/sub_plan.h"

namespace reel {

/// Runs the taken branch of one cond. A branch is planned when it is first taken.
class CondPlan {
 public:
  /// context: its child 0 belongs to on_false, child 1 to on_true.
  explicit CondPlan(const PlanContext& context)
      : branches_{SubPlan(context.child(0)), SubPlan(context.child(1))} {}
  /// Runs a branch. in: predicate, captures. Defined tensors of `out` are written, others are set.
  void run(const AttrsRef& attrs, OpInputs in, std::span<Tensor> out);

  std::int64_t held_bytes() const { return branches_[0].held_bytes() + branches_[1].held_bytes(); }

 private:
  friend class PlanView;
  SubPlan branches_[2];
  std::vector<TensorType> types_;  ///< of the branch's captures; kept to reuse the memory
};

}  // namespace reel
