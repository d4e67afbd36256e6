#include "reel/core/graph/passes/dim_meetings.h"

#include <algorithm>
#include <unordered_set>

#include "reel/core/ops/control/graphs_of_record.h"

namespace reel {
namespace {

/// Returns true if two ascending lists have a number in common.
bool have_common(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b) {
  for (auto i = a.begin(), j = b.begin(); i != a.end() && j != b.end(); *i < *j ? ++i : ++j)
    if (*i == *j) return true;
  return false;
}

}  // namespace

DimMeetings::Key DimMeetings::key_of(const Dim& dim) {
  return {dim.node(), dim.node() ? 0 : dim.raw_size()};
}

/// A symbol stands for the dim to which it is bound. Any other dim stands for itself, unless a
/// symbol is bound to it: the outer dim goes by the symbol's name then.
DimMeetings::Names DimMeetings::names_inside(const SubGraph& sub, const Names& around) {
  const auto outermost = [&](const Key& key) {
    const auto found = around.find(key);
    return found == around.end() ? key : found->second;
  };
  Names names = around;
  for (const auto& [symbol, outside] : sub.bindings) names[key_of(outside)] = {nullptr, -1};
  for (const auto& [symbol, outside] : sub.bindings)
    names[key_of(symbol)] = outermost(key_of(outside));
  return names;
}

void DimMeetings::read(const Graph& graph, const Names& names) {
  std::unordered_set<const TypeNode*> seen;
  for (const TensorType& type : graph.types) {
    if (!seen.insert(type.node()).second) continue;
    for (const Dim& dim : type.dims()) {
      const Key own = key_of(dim);
      const auto found = names.find(own);
      std::vector<std::uint32_t>& with = types_[found == names.end() ? own : found->second];
      if (with.empty() || with.back() != count_) with.push_back(count_);
    }
    ++count_;
  }
  for (const OpRecord& record : graph.records)
    if (record.attrs)
      for (const SubGraph& sub : sub_graphs_of(record))
        if (sub) read(*sub.graph, names_inside(sub, names));
}

bool DimMeetings::meet(const Dim& a, const Dim& b) {
  if (!is_read_) read(*graph_, {});
  is_read_ = true;
  const auto with_a = types_.find(key_of(a)), with_b = types_.find(key_of(b));
  return with_a != types_.end() && with_b != types_.end() &&
         have_common(with_a->second, with_b->second);
}

}  // namespace reel
