#include "reel/autodiff/reverse_call.h"

#include "reel/autodiff/reverse_graph.h"

namespace reel {

ReversibleGraph make_reversible(const Graph& graph, const std::vector<std::uint8_t>& wanted_inputs,
                                const std::vector<std::uint8_t>& takes_rows) {
  ReversalSpec spec;
  spec.is_enclosed = false;
  spec.assumes_cotangents = true;
  for (const ValueId v : graph.outputs)
    spec.has_cotangent.push_back(is_float(graph.types[v].dtype()));
  spec.is_wanted = wanted_inputs;
  spec.takes_rows = takes_rows;
  spec.is_free.assign(graph.inputs.size(), 1);
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) spec.kept_anyway.push_back(i);
  const ReversedGraph reversed = reverse_graph(graph, spec);
  ReversibleGraph result;
  result.forward = Ref<Graph>(new Graph(*reversed.forward));
  for (const std::size_t i : reversed.kept)
    result.forward->outputs.push_back(reversed.forward->outputs[i]);
  for (const Residual& residual : reversed.residuals)
    result.forward->outputs.push_back(residual.value);
  result.forward->seal();
  result.reverse = reversed.graph;
  result.cotangents = reversed.cotangents;
  result.inputs = reversed.inputs;
  result.wanted = reversed.wanted;
  result.presences = reversed.presences;
  result.row_numbers = reversed.row_numbers;
  result.captured = reversed.captured;
  return result;
}

}  // namespace reel
