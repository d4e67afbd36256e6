// trace/executors/plan/explain/explain_residuals.h — the lines of explain() about residuals of a
// loop.
#pragma once

#include <string>
#include <vector>

#include "reel/trace/executors/plan/explain/plan_view.h"

namespace reel {

/// Returns the types of a loop's stacks: only the residuals if only_residuals, otherwise all.
std::vector<TensorType> stacks_of(const Plan& plan, const PlanView::Instruction& at,
                                  bool only_residuals);

/// Returns lines about the residuals of a loop: which ones, under which policy, and which of them
/// it reads recomputed.
std::vector<std::string> lines_of_residuals(const Plan& plan, const PlanView::Instruction& at);

}  // namespace reel
