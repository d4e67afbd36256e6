// core/ops/loop/loop.h — the op loop: while_loop, scan and all their gradients are records of
// it.
#pragma once

#include "reel/core/ops/loop/loop_attrs.h"
#include "reel/core/ops/loop/loop_types.h"
#include "reel/core/ops/loop/loop_views.h"

namespace reel {

extern const Op loop_op;

// Implemented by other folders: running (trace/executors) and differentiating (autodiff).
void run_loop(KernelArgs& args);
void loop_vjp(Vjp& at);

}  // namespace reel
