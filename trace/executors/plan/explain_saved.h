// trace/executors/plan/explain_saved.h — what explain() says of what a loop keeps for its gradient.
#pragma once

#include <string>
#include <vector>

#include "reel/trace/executors/plan/plan_view.h"

namespace reel {

/// What a loop stacks up; those that are there for its gradient's sake, or all.
std::vector<TensorType> stacks_of(const Plan& plan, const PlanView::Instruction& at,
                                  bool only_saved);

/// What a loop keeps for its gradient, under which policy, and what it reads that was not kept.
std::vector<std::string> lines_of_saved(const Plan& plan, const PlanView::Instruction& at);

}  // namespace reel
