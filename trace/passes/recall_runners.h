// trace/passes/recall_runners.h — the pass that lets what is recalled be computed by a plan.
#pragma once

#include "reel/core/graph_runner.h"

namespace reel {

/// Every recall op of the graph, of bodies and branches too, runs steps again in this way, and
/// keeps the graphs of such runs.
Ref<Graph> recall_by(const Graph& graph, const GraphRunner& runner);
bool has_recalls(const Graph& graph);

}  // namespace reel
