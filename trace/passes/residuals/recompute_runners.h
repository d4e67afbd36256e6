// trace/passes/residuals/recompute_runners.h — lets a plan compute recomputed residuals.
#pragma once

#include "reel/core/graph/graph_runner.h"

namespace reel {

/// Sets the runner of every recompute op of the graph, in bodies and branches too. Gives each op a
/// cache of the graphs that it runs.
Ref<Graph> recompute_by(const Graph& graph, const GraphRunner& runner);
bool has_recomputes(const Graph& graph);

}  // namespace reel
