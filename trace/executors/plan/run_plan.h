// trace/executors/plan/run_plan.h — running a graph through its plans.
#pragma once

#include "reel/core/graph.h"
#include "reel/core/passes.h"

namespace reel {

/// Runs a graph on its inputs (formal ones, then captures) by a plan for their sizes, which is made
/// when such sizes first come and kept with the graph.
Tensors run_plan(const GraphRef& graph, const Tensors& inputs, const Passes& passes);

}  // namespace reel
