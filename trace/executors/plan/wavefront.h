// trace/executors/plan/wavefront.h — run_wavefront: runs chunked loops as a pipeline.
#pragma once

#include <span>

#include "reel/trace/executors/plan/loop/loop_run.h"

namespace reel {

/// Runs chunked loops that read slices of earlier loops' stacks
/// (trace/passes/loop_structure/group_pipelined_loops.h). A loop begins a chunk on any free thread
/// as soon as earlier loops have stacked the chunk's time steps. For stacked layers:
///
///   first layer    0 1 2 3 4
///   second layer     0 1 2 3 4
///
/// The chunks of a loop run one after the other, so that results do not depend on threads.
/// Throws if a loop does; the other loops then stop behind their present chunk.
void run_wavefront(std::span<LoopRun* const> loops);

}  // namespace reel
