// autodiff/recorded_reversal.h — records a graph and its reverse in one graph.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "reel/autodiff/reverse_graph.h"

namespace reel {

/// The forward records applied again, then reverse ones: everything that may be needed, in one
/// graph.
struct RecordedReversal {
  Ref<Graph> graph;
  Tensors captured;
  std::size_t forward_records = 0;       ///< records before the reverse ones
  std::vector<ValueId> forward_outputs;  ///< by output of the forward graph: its value here
  // As in ReversedGraph.
  std::vector<std::size_t> cotangents, wanted;
  std::vector<int> presences, row_numbers;
  std::vector<std::pair<Dim, Dim>> dims;  ///< the forward graph's own dims, with the dims here
};
/// Returns the graph of `forward`, applied again, and of its vjps. Equal records are merged.
RecordedReversal record_reversal(const Graph& forward, const ReversalSpec& spec);

}  // namespace reel
