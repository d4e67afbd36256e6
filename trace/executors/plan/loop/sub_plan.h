// trace/executors/plan/loop/sub_plan.h — SubPlan: the plan of a body, condition or branch.
#pragma once

#include <memory>
#include <vector>

#include "reel/trace/executors/plan/plan.h"

namespace reel {

/// Owns the plan of a sub-graph. Makes it when first needed, and again when sizes change. Not
/// thread-safe.
class SubPlan {
 public:
  explicit SubPlan(const PlanContext& context) : context_(context) {}

  /// Provides the plan for inputs of these types. Returns true if the plan, or the dims that it is
  /// bound to, differ from the last call. The first call returns true.
  ///
  /// is_block: by output, true for Plan::Outputs::blocks; other outputs are Plan::Outputs::placed.
  /// Lists are always blocks.
  bool prepare(const SubGraph& sub, const std::vector<TensorType>& types,
               const std::vector<std::uint8_t>& is_block = {});
  /// True after the first prepare().
  explicit operator bool() const { return static_cast<bool>(plan_); }
  std::int64_t held_bytes() const { return plan_ ? plan_->held_bytes() : 0; }
  Plan& operator*() const { return *plan_; }
  Plan* operator->() const { return plan_.get(); }

 private:
  /// is_same_graph: the plan before is of this graph, for other sizes.
  void make(const SubGraph& sub, const std::vector<std::uint8_t>& is_block, bool is_same_graph);

  PlanContext context_;
  std::unique_ptr<Plan> plan_;
  GraphRef graph_;  ///< of plan_, which needs it
  SubGraph sub_;    ///< without a graph if planning failed
  std::vector<TensorType> types_;
};

}  // namespace reel
