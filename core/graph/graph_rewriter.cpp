#include "reel/core/graph/graph_rewriter.h"

#include <cassert>
#include <numeric>

namespace reel {

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
