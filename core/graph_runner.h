// core/graph_runner.h — GraphRunner, an executor as others know it.
#pragma once

#include <utility>

#include "reel/core/graph.h"
#include "reel/core/passes.h"

namespace reel {

/// How an executor runs a graph; each reads what is its own.
struct RunOptions {
  Passes passes = {};           ///< of the plan
  int parallel_iterations = 0;  ///< of every loop, by tokens; 0: as many as each says
};

/// Runs a graph on its inputs (formal ones, then captures). It may use up those whose reference
/// count is one. If it throws, `inputs` holds what it held before, with the same values.
/// trace/executors has several.
struct GraphRunner {
  Tensors (*run)(const GraphRef& graph, Tensors&& inputs, const RunOptions& options);
  RunOptions options = {};
  Tensors operator()(const GraphRef& graph, Tensors&& inputs) const {
    return run(graph, std::move(inputs), options);
  }
};

}  // namespace reel
