// trace/executors/interpreter.h — runs a graph op by op; the reference for the other executors.
#pragma once

#include "reel/core/base/visibility.h"
#include "reel/core/graph/graph.h"
#include "reel/core/graph/graph_runner.h"

namespace reel {

/// Runs a graph with the eager kernels, one op after the other.
///
/// inputs: the formal inputs, then the captures. They stay alive until the run is done, so that the
/// caller has them if it fails.
/// Returns the outputs, with the bits of eager mode, whatever passes a plan would apply.
REEL_API Tensors interpret(const GraphRef& graph, Tensors&& inputs, const RunOptions& = {});

}  // namespace reel
