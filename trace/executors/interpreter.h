// trace/executors/interpreter.h — running a graph op by op: the reference.
#pragma once

#include "reel/core/graph.h"

namespace reel {

/// Runs a graph on its inputs (formal ones, then captures) with the eager kernels, one after the
/// other: the bits of eager mode.
Tensors interpret(const GraphRef& graph, const Tensors& inputs);

}  // namespace reel
