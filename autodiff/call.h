// autodiff/call.h — running a top-level graph eagerly, and on an eager tape as one record.
#pragma once

#include "reel/core/graph.h"

namespace reel {

/// Runs a graph on its inputs (formal ones, then captures); trace/executors has several.
using GraphRunner = Tensors (*)(const GraphRef& graph, const Tensors& inputs);

/// Runs a graph on its inputs in eager mode. Under a tape the call is one record, whose vjp runs the
/// reversed graph in the same way.
Tensors call_graph(const GraphRef& graph, const Tensors& inputs, GraphRunner runner);

}  // namespace reel
