#include "reel/trace/passes/fusion/iteration_body.h"

#include "reel/core/ops/loop/loop_sums.h"

namespace reel {

Ref<Graph> iteration_body(const Graph& fused, std::span<const std::size_t> results,
                          std::span<const std::size_t> terms) {
  Ref<Graph> graph(new Graph(fused));
  graph->outputs.clear();
  for (const std::size_t k : results) graph->outputs.push_back(fused.outputs[k]);
  for (const std::size_t k : terms) {
    const ValueId term = fused.outputs[k];
    const ValueId total = graph->add_value(fused.types[term]);
    graph->inputs.push_back(total);
    graph->outputs.push_back(append_to_sum(*graph, total, term));
  }
  graph->formal_count = graph->inputs.size();
  graph->seal();
  return graph;
}

}  // namespace reel
