// trace/executors/plan/loop/place_input.h — place_input, which gives a plan an input in memory.
#pragma once

#include "reel/trace/executors/plan/base/plan_views.h"
#include "reel/trace/executors/plan/plan.h"

namespace reel {

[[gnu::noinline]] inline void keep_input(Plan& plan, std::size_t i, void* data) {
  plan.set_input(i, owned(placed(plan.input_type(i), data)));
}
/// Sets input i of the plan to `data`, which must stay valid until the plan has run.
inline void place_input(Plan& plan, std::size_t i, void* data) {
  if (!plan.reads_input(i)) return;
  if (plan.keeps_input(i)) return keep_input(plan, i, data);
  plan.move_input(i, data);
}

}  // namespace reel
