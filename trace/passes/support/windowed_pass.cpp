#include "reel/trace/passes/support/windowed_pass.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "reel/core/graph/graph_rewriter.h"

namespace reel {
namespace {

/// A window of a graph's records as a graph with values of its own.
struct Window {
  Ref<Graph> graph;
  std::vector<ValueId> outside;  ///< by value of the window, the value of the whole graph
};

/// last_reads: by value of the whole graph, the last record that reads it; the number of records
/// for an output.
Window window_of(const Graph& whole, std::size_t begin, std::size_t end,
                 const std::vector<std::size_t>& last_reads) {
  Window window{Ref<Graph>(new Graph), {}};
  Graph& graph = *window.graph;
  graph.name = whole.name;
  std::unordered_map<ValueId, ValueId> inside;
  const auto here = [&](ValueId v, bool is_input) {
    const auto [found, is_new] = inside.try_emplace(v);
    if (is_new) {
      found->second = graph.add_value(whole.types[v]);
      window.outside.push_back(v);
      if (is_input) graph.inputs.push_back(found->second);
    }
    return found->second;
  };
  for (std::size_t r = begin; r < end; ++r) {
    const OpRecord& record = whole.records[r];
    std::vector<ValueId> reads, makes;
    for (const ValueId v : whole.inputs_of(record)) reads.push_back(here(v, true));
    for (const ValueId v : whole.outputs_of(record)) makes.push_back(here(v, false));
    graph.append(record, record.attrs, reads, makes);
    for (const ValueId v : whole.outputs_of(record))
      if (last_reads[v] >= end) graph.outputs.push_back(inside.at(v));
  }
  graph.formal_count = graph.inputs.size();
  graph.seal();
  return window;
}

}  // namespace

Ref<Graph> windowed_pass(const Graph& graph, std::size_t most_records,
                         const std::function<Ref<Graph>(const Graph&)>& pass) {
  const std::size_t count = graph.records.size();
  if (count <= most_records) return pass(graph);
  std::vector<std::size_t> last_reads(graph.types.size(), 0);
  for (std::size_t r = 0; r < count; ++r)
    for (const ValueId v : graph.inputs_of(graph.records[r])) last_reads[v] = r;
  for (const ValueId v : graph.outputs) last_reads[v] = count;
  GraphRewriter to(graph);
  for (std::size_t begin = 0; begin < count; begin += most_records) {
    const Window window =
        window_of(graph, begin, std::min(begin + most_records, count), last_reads);
    const auto outside = [&](std::span<const ValueId> values) {
      std::vector<ValueId> there;
      for (const ValueId v : values) there.push_back(window.outside[v]);
      return there;
    };
    const Ref<Graph> made = pass(*window.graph);
    for (const OpRecord& record : made->records)
      to.to().append(record, record.attrs, outside(made->inputs_of(record)),
                     outside(made->outputs_of(record)));
  }
  return to.finish();
}

}  // namespace reel
