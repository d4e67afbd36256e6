// trace/executors/plan/wavefront.h — run_wavefront, loops in chunks that run beside each other.
#pragma once

#include <span>

#include "reel/trace/executors/plan/loop_run.h"

namespace reel {

/// Runs loops in chunks, of which each reads slices that those before it stack up
/// (trace/passes/adjoin_loops.h): a loop begins a chunk as soon as they have stacked its steps, on
/// whichever thread is free. As stacked layers do:
///
///   first layer    0 1 2 3 4
///   second layer     0 1 2 3 4
///
/// The chunks of a loop run one after the other, so that results do not depend on threads.
void run_wavefront(std::span<LoopRun* const> loops);

}  // namespace reel
