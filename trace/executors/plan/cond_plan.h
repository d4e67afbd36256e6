// trace/executors/plan/cond_plan.h — CondPlan, a cond whose branches are plans.
#pragma once

#include <memory>
#include <vector>

#include "reel/core/ops/loop.h"
#include "reel/trace/executors/plan/sub_plan.h"

namespace reel {

/// Runs the taken branch of one cond; the other one is not even planned before it is taken.
class CondPlan {
 public:
  /// context: its children are those of on_false and on_true.
  explicit CondPlan(const PlanContext& context)
      : branches_{SubPlan(context.child(0)), SubPlan(context.child(1))} {}
  /// in: predicate, captures. out: written where a tensor is given, else set.
  void run(const AttrsRef& attrs, OpInputs in, std::span<Tensor> out);

 private:
  friend class PlanView;
  SubPlan branches_[2];
  std::vector<TensorType> types_;  ///< of what the branch captures; kept for its memory
};

}  // namespace reel
