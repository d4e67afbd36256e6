// trace/executors/plan/base/plan_context.h — PlanContext: settings that a plan shares with the
// plans inside it.
#pragma once

#include "reel/core/options/passes.h"
#include "reel/trace/executors/plan/base/profile.h"

namespace reel {

/// How plans are made, and where their runs are counted.
struct PlanContext {
  Passes passes = {};
  Profile* profile = nullptr;  ///< null: runs are not counted; must outlive the plans
  bool is_checked = false;     ///< the result of every instruction is checked (DetectNan)

  /// Returns the context for child `i` of the profile; LoopPlan and CondPlan number their children.
  PlanContext child(std::size_t i) const {
    return {passes, profile ? &profile->child(i) : nullptr, is_checked};
  }
};

}  // namespace reel
