// core/graph/graph_runner.h — GraphRunner, the interface of an executor.
#pragma once

#include <utility>

#include "reel/core/graph/graph.h"
#include "reel/core/options/passes.h"

namespace reel {

/// Options for running a graph; each executor reads those that it supports.
struct RunOptions {
  Passes passes = {};  ///< passes of the plan
  /// Dataflow executor: iterations in flight of every loop; 0: the number that each loop was given.
  int parallel_iterations = 0;
};

/// Runs a graph on its inputs (formal ones, then captures). May overwrite inputs with a reference
/// count of one. If it throws, `inputs` holds the same values as before. Executors are in
/// trace/executors.
struct GraphRunner {
  Tensors (*run)(const GraphRef& graph, Tensors&& inputs, const RunOptions& options);
  RunOptions options = {};
  Tensors operator()(const GraphRef& graph, Tensors&& inputs) const {
    return run(graph, std::move(inputs), options);
  }
};

}  // namespace reel
