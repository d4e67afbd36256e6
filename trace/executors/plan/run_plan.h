// trace/executors/plan/run_plan.h — running a graph through its plans.
#pragma once

#include "reel/core/graph.h"
#include "reel/core/passes.h"

namespace reel {

/// Runs a graph on its inputs (formal ones, then captures) by a plan for their sizes, which is made
/// when such sizes first come and kept with the graph. Results are written over formal inputs that
/// nobody else holds, where they are not needed any more and nothing can fail from there on.
Tensors run_plan(const GraphRef& graph, Tensors inputs, const Passes& passes);

}  // namespace reel
