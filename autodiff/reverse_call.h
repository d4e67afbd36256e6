// autodiff/reverse_call.h — prepares a graph for calls that can be reversed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "reel/core/graph/graph.h"

namespace reel {

/// A graph with its residuals as further outputs, and the reverse graph. Inputs of the reverse
/// graph: cotangents of floating outputs, then inputs of the graph, then residuals, then
/// `captured`. Outputs: cotangents of the wanted inputs.
struct ReversibleGraph {
  Ref<Graph> forward;  ///< outputs: of the graph, then residuals
  Ref<Graph> reverse;
  std::vector<std::size_t> cotangents;  ///< outputs of the graph with cotangents in `reverse`
  std::vector<std::size_t> inputs;      ///< inputs of the graph that `reverse` takes
  // As in ReversedGraph.
  std::vector<std::size_t> wanted;
  std::vector<int> presences, row_numbers;
  Tensors captured;  ///< values from outside, the last inputs of `reverse`
};

/// A graph derived from another graph: calls of the latter run it if tapes record them.
///
/// what: its relation to the other graph, such as
///   ", under a tape"; ", its gradient"; with two tapes ", its gradient, under a tape"
/// For a tape that takes rows, " in rows" follows.
struct GraphUnderTapes {
  std::string what;
  GraphRef graph;
};
/// Returns the graphs that were derived from `graph` so far; empty if no tape recorded a call.
std::vector<GraphUnderTapes> graphs_under_tapes(const Graph& graph);

/// Returns the graph with its reverse with respect to the wanted inputs.
///
/// takes_rows: by input, its cotangent may be rows (Vjp::takes_rows); empty for none.
ReversibleGraph make_reversible(const Graph& graph, const std::vector<std::uint8_t>& wanted_inputs,
                                const std::vector<std::uint8_t>& takes_rows = {});

}  // namespace reel
