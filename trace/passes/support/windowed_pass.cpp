#include "reel/trace/passes/support/windowed_pass.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "reel/core/graph/graph_rewriter.h"

namespace reel {

Ref<Graph> windowed_pass(const Graph& graph, std::size_t most_records,
                         const std::function<Ref<Graph>(const Graph&)>& pass) {
  const std::size_t count = graph.records.size();
  if (count <= most_records) return pass(graph);
  std::vector<std::size_t> last_reads(graph.types.size(), 0);
  for (std::size_t r = 0; r < count; ++r)
    for (const ValueId v : graph.inputs_of(graph.records[r])) last_reads[v] = r;
  for (const ValueId v : graph.outputs) last_reads[v] = count;
  GraphRewriter to(graph);
  std::vector<std::size_t> records;
  for (std::size_t begin = 0; begin < count; begin += most_records) {
    const std::size_t end = std::min(begin + most_records, count);
    records.resize(end - begin);
    std::iota(records.begin(), records.end(), begin);
    PartOfGraph window =
        part_of_graph(graph, records, [&](ValueId v) { return last_reads[v] >= end; });
    window.graph->name = graph.name;
    const Ref<Graph> made = pass(*window.graph);
    window.outside.resize(made->types.size(), kNoValue);
    inline_graph(to.to(), *made, window.outside);
  }
  return to.finish();
}

}  // namespace reel
