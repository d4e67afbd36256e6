// autodiff/call.h — running a top-level graph eagerly, and on an eager tape as one record.
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

/// Runs a graph on its inputs in eager mode. Under a tape the call is one record, whose vjp runs
/// the reversed graph in the same way.
Tensors call_graph(const GraphRef& graph, Tensors inputs, const GraphRunner& runner);

}  // namespace reel
