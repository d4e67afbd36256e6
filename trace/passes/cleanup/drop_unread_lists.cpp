#include "reel/trace/passes/cleanup/drop_unread_lists.h"

#include <algorithm>
#include <vector>

#include "reel/core/graph/graph_rewriter.h"
#include "reel/core/ops/control/graphs_of_record.h"

namespace reel {

GraphRef drop_unread_lists(const GraphRef& given) {
  const Graph& graph = *given;
  std::vector<std::uint8_t> is_read(graph.types.size()), is_dropped(graph.records.size());
  for (const ValueId v : graph.outputs) is_read[v] = 1;
  for (std::size_t r = graph.records.size(); r-- > 0;) {
    const OpRecord& record = graph.records[r];
    const auto out = graph.outputs_of(record);
    is_dropped[r] = !out.empty() && !has_sub_graphs(*record.op) && !record.op->has_effect &&
                    std::ranges::all_of(
                        out, [&](ValueId v) { return graph.types[v].is_list() && !is_read[v]; });
    if (is_dropped[r]) continue;
    for (const ValueId v : graph.inputs_of(record)) is_read[v] = 1;
  }
  if (!std::ranges::count(is_dropped, 1)) return given;
  GraphRewriter to(graph);
  for (std::size_t r = 0; r < graph.records.size(); ++r)
    if (!is_dropped[r]) to.keep(graph.records[r]);
  return to.finish();
}

}  // namespace reel
