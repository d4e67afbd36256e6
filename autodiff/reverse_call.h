// autodiff/reverse_call.h — prepares a graph for calls that can be reversed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "reel/core/graph/graph.h"

namespace reel {

/// A graph with its residuals as further outputs, and the reverse graph. The latter takes
/// cotangents of all floating outputs, then inputs, then residuals, and returns cotangents of the
/// wanted inputs.
struct ReversibleGraph {
  Ref<Graph> forward;  ///< outputs: of the graph, then residuals
  Ref<Graph> reverse;
  std::vector<std::size_t> cotangents;  ///< `reverse` takes cotangents of these outputs first
  std::vector<std::size_t> inputs;      ///< it takes these inputs next
  std::vector<std::size_t> wanted;      ///< it returns cotangents of these inputs
  std::vector<int> presences;  ///< by wanted input: the output of `reverse` that says whether there
                               ///< is a cotangent, or -1
  std::vector<int> row_numbers;  ///< by wanted input: the output with row numbers if the cotangent
                                 ///< is rows, or -1
  Tensors captured;              ///< it takes these last
};

/// A graph that calls of another graph run under tapes.
///
/// what: its relation to that graph, such as
///   ", under a tape"; ", its gradient"; with two tapes ", its gradient, under a tape"
/// For a tape that takes rows, " in rows" follows.
struct GraphUnderTapes {
  std::string what;
  GraphRef graph;
};
/// Returns the graphs of this kind that exist, for a graph that calls under tapes use.
std::vector<GraphUnderTapes> graphs_under_tapes(const Graph& graph);

/// Returns the graph with its reverse with respect to the wanted inputs.
///
/// takes_rows: by input, its cotangent may be rows (Vjp::takes_rows); empty for none.
ReversibleGraph make_reversible(const Graph& graph, const std::vector<std::uint8_t>& wanted_inputs,
                                const std::vector<std::uint8_t>& takes_rows = {});

}  // namespace reel
