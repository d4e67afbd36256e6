// trace/executors/plan/plan_context.h — PlanContext, what plans and the plans inside them share.
#pragma once

#include "reel/core/passes.h"
#include "reel/trace/executors/plan/profile.h"

namespace reel {

/// How plans are made, and where their runs are counted.
struct PlanContext {
  Passes passes = {};
  Profile* profile = nullptr;  ///< null: nobody counts; outlives the plans

  /// For child `i` of the profile (LoopPlan and CondPlan say which that is).
  PlanContext child(std::size_t i) const {
    return {passes, profile ? &profile->child(i) : nullptr};
  }
};

}  // namespace reel
