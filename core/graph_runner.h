// core/graph_runner.h — GraphRunner, an executor as others know it.
#pragma once

#include <utility>

#include "reel/core/graph.h"
#include "reel/core/passes.h"

namespace reel {

/// Runs a graph on its inputs (formal ones, then captures), which it may use up where nobody else
/// holds them; trace/executors has several.
struct GraphRunner {
  Tensors (*run)(const GraphRef& graph, Tensors inputs, const Passes& passes);
  Passes passes = {};
  Tensors operator()(const GraphRef& graph, Tensors inputs) const {
    return run(graph, std::move(inputs), passes);
  }
};

}  // namespace reel
