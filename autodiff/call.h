// autodiff/call.h — running a top-level graph eagerly, and on an eager tape as one record.
#pragma once

#include "reel/core/graph_runner.h"

namespace reel {

/// Runs a graph on its inputs in eager mode. Under a tape the call is one record, whose vjp runs
/// the reversed graph in the same way. If it throws, `inputs` holds what it held before.
Tensors call_graph(const GraphRef& graph, Tensors&& inputs, const GraphRunner& runner);

}  // namespace reel
