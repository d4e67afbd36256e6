#include "reel/core/graph/graph_rewriter.h"

#include <cassert>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

namespace reel {

void inline_graph(Graph& to, const Graph& part, std::vector<ValueId>& place) {
  std::vector<ValueId> in, out;
  for (const OpRecord& record : part.records) {
    in.clear();
    out.clear();
    for (const ValueId v : part.inputs_of(record)) in.push_back(place[v]);
    for (const ValueId v : part.outputs_of(record)) {
      if (place[v] == kNoValue) place[v] = to.add_value(part.types[v]);
      out.push_back(place[v]);
    }
    to.append(record, record.attrs, in, out);
  }
}

std::vector<ValueId> inline_graph(Graph& to, const Graph& part, std::span<const ValueId> inputs) {
  assert(inputs.size() == part.inputs.size());
  std::vector<ValueId> place(part.types.size(), kNoValue), result;
  for (std::size_t i = 0; i < inputs.size(); ++i) place[part.inputs[i]] = inputs[i];
  inline_graph(to, part, place);
  for (const ValueId v : part.outputs) result.push_back(place[v]);
  return result;
}

PartOfGraph part_of_graph(const Graph& whole, std::span<const std::size_t> records,
                          const std::function<bool(ValueId)>& is_output) {
  PartOfGraph part{Ref<Graph>(new Graph), {}};
  Graph& graph = *part.graph;
  std::unordered_set<ValueId> is_made;
  for (const std::size_t r : records)
    for (const ValueId v : whole.outputs_of(whole.records[r])) is_made.insert(v);
  std::unordered_map<ValueId, ValueId> place;
  const auto here = [&](ValueId v) {
    const auto [found, is_new] = place.try_emplace(v);
    if (is_new) {
      found->second = graph.add_value(whole.types[v]);
      part.outside.push_back(v);
    }
    return found->second;
  };
  for (const std::size_t r : records)
    for (const ValueId v : whole.inputs_of(whole.records[r]))
      if (!is_made.contains(v) && !place.contains(v)) graph.inputs.push_back(here(v));
  graph.formal_count = graph.inputs.size();
  for (const std::size_t r : records) {
    const OpRecord& record = whole.records[r];
    std::vector<ValueId> in, out;
    for (const ValueId v : whole.inputs_of(record)) in.push_back(here(v));
    for (const ValueId v : whole.outputs_of(record)) out.push_back(here(v));
    graph.append(record, record.attrs, in, out);
    for (const ValueId v : whole.outputs_of(record))
      if (is_output(v)) graph.outputs.push_back(here(v));
  }
  graph.seal();
  return part;
}

GraphRewriter::GraphRewriter(const Graph& from) : from_(from), to_(new Graph(from)) {
  to_->records.clear();
  to_->operands.clear();
}

void GraphRewriter::replace(ValueId v, ValueId by) {
  assert(v < from_.types.size());
  if (now_.empty()) {
    now_.resize(from_.types.size());
    std::iota(now_.begin(), now_.end(), 0);
  }
  now_[v] = by;
}

std::vector<ValueId> GraphRewriter::inputs_of(const OpRecord& record) const {
  const auto given = from_.inputs_of(record);
  std::vector<ValueId> result(given.begin(), given.end());
  for (ValueId& v : result) v = (*this)[v];
  return result;
}

Ref<Graph> GraphRewriter::finish() {
  for (ValueId& v : to_->outputs) v = (*this)[v];
  to_->seal();
  return std::move(to_);
}

}  // namespace reel
