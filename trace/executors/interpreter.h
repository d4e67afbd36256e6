// trace/executors/interpreter.h — running a graph op by op: the reference.
#pragma once

#include "reel/core/graph.h"
#include "reel/core/graph_runner.h"

namespace reel {

/// Runs a graph on its inputs (formal ones, then captures) with the eager kernels, one after the
/// other: the bits of eager mode, whatever passes a plan would make.
Tensors interpret(const GraphRef& graph, Tensors&& inputs, const RunOptions& = {});

}  // namespace reel
