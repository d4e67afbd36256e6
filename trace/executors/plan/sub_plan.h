// trace/executors/plan/sub_plan.h — SubPlan, the plan of a body, condition or branch, kept up to
// date.
#pragma once

#include <memory>
#include <vector>

#include "reel/trace/executors/plan/plan.h"

namespace reel {

/// Makes the plan of a sub-graph when it is first needed, and again when sizes change.
class SubPlan {
 public:
  explicit SubPlan(const PlanContext& context) : context_(context) {}

  /// The plan for inputs of these types -> whether it is another one, or for other dims, than at
  /// the call before. attrs: of the op, which `sub` is a part of. Outputs that are lists are
  /// blocks, and those that is_block names; others are placed.
  bool prepare(const AttrsRef& attrs, const SubGraph& sub, const std::vector<TensorType>& types,
               const std::vector<std::uint8_t>& is_block = {});
  explicit operator bool() const { return static_cast<bool>(plan_); }
  Plan& operator*() const { return *plan_; }
  Plan* operator->() const { return plan_.get(); }

 private:
  PlanContext context_;
  std::unique_ptr<Plan> plan_;
  AttrsRef attrs_;
  SubGraph sub_;
  std::vector<TensorType> types_;
};

}  // namespace reel
