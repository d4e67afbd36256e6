// autodiff/call.h — runs a top-level graph eagerly, and records it on an eager tape as one op.
#pragma once

#include "reel/core/graph/graph_runner.h"

namespace reel {

/// Runs a graph on its inputs in eager mode. Under a tape the call is one record; its vjp runs the
/// reversed graph in the same way. If it throws, `inputs` is unchanged.
Tensors call_graph(const GraphRef& graph, Tensors&& inputs, const GraphRunner& runner);

}  // namespace reel
