// autodiff/reverse_call.h — what a call of a whole graph must keep so that it can be reversed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "reel/core/graph.h"

namespace reel {

/// A graph with more outputs, and the graph that reads them: cotangents of its floating outputs
/// (all of them), then inputs, then what was saved -> cotangents of its wanted inputs.
struct ReversibleGraph {
  Ref<Graph> forward;  ///< outputs: those of the graph, then what is saved
  Ref<Graph> reverse;
  std::vector<int> cotangents;   ///< which outputs' cotangents `reverse` takes first
  std::vector<int> inputs;       ///< then these inputs
  std::vector<int> wanted;       ///< what it gives: cotangents of these inputs
  std::vector<int> presences;    ///< and which of its outputs says whether there is one, or -1
  std::vector<int> row_numbers;  ///< and which has its row numbers, if it is rows, or -1
  Tensors captured;              ///< and takes last
};

/// A graph that calls of another one run under tapes; what it is to that: ", under a tape", ", its
/// gradient", and of two tapes ", its gradient, under a tape"; behind those of a tape that takes
/// rows stands " in rows".
struct GraphUnderTapes {
  std::string what;
  GraphRef graph;
};
/// Those that there are so far, of a graph that calls under tapes know.
std::vector<GraphUnderTapes> graphs_under_tapes(const Graph& graph);

/// takes_rows: by input, its cotangent may be rows (Vjp::takes_rows); empty for none.
ReversibleGraph make_reversible(const Graph& graph, const std::vector<std::uint8_t>& wanted_inputs,
                                const std::vector<std::uint8_t>& takes_rows = {});

}  // namespace reel
