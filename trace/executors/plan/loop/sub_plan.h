// trace/executors/plan/loop/sub_plan.h — SubPlan: the plan of a body, condition or branch.
#pragma once

#include <memory>
#include <vector>

#include "reel/trace/executors/plan/plan.h"

namespace reel {

/// Plans a sub-graph when first needed, and again when sizes change.
class SubPlan {
 public:
  explicit SubPlan(const PlanContext& context) : context_(context) {}

  /// Provides the plan for inputs of these types. Returns true if the plan, or the dims that it is
  /// bound to, differ from the last call. The first call returns true.
  ///
  /// attrs: of the op that contains `sub`.
  /// is_block: by output; such outputs, and lists, are returned as blocks, others are placed.
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
