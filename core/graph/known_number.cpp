#include "reel/core/graph/known_number.h"

#include <algorithm>
#include <vector>

namespace reel {

const OpRecord* record_of(const Graph& graph, ValueId v) {
  for (const OpRecord& record : graph.records) {
    const auto out = graph.outputs_of(record);
    if (std::find(out.begin(), out.end(), v) != out.end()) return &record;
  }
  return nullptr;
}

std::optional<std::int64_t> known_number(const Graph& graph, ValueId v,
                                         const KnownNumbers& numbers) {
  if (const auto found = numbers.find(v); found != numbers.end()) return found->second;
  const OpRecord* const maker = record_of(graph, v);
  if (!maker) return std::nullopt;
  if (!maker->op->known_integer) return std::nullopt;
  std::vector<std::int64_t> in;
  for (const ValueId input : graph.inputs_of(*maker)) {
    const auto number = known_number(graph, input, numbers);
    if (!number) return std::nullopt;
    in.push_back(*number);
  }
  return maker->op->known_integer(maker->attrs.get(), in);
}

}  // namespace reel
