#include "reel/core/dims/known_number.h"

#include <algorithm>

#include "reel/core/ops/creation/creation.h"
#include "reel/core/ops/elementwise/elementwise.h"

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
  if (maker->op == &full_op) {
    const auto& attrs = get<FullAttrs>(maker->attrs.get());
    if (attrs.type.rank() || is_float(attrs.type.dtype())) return std::nullopt;
    return attrs.integer;
  }
  const auto in = graph.inputs_of(*maker);
  if (maker->op == &cast_op) return known_number(graph, in[0], numbers);
  if (maker->op != &minimum_op && maker->op != &maximum_op) return std::nullopt;
  const auto a = known_number(graph, in[0], numbers), b = known_number(graph, in[1], numbers);
  if (!a || !b) return std::nullopt;
  return maker->op == &minimum_op ? std::min(*a, *b) : std::max(*a, *b);
}

}  // namespace reel
