#include "reel/trace/executors/plan/gradient_values.h"

#include <algorithm>
#include <string_view>

namespace reel {

int gradient_order(const LoopAttrs& attrs) {
  constexpr std::string_view kGradient = "the gradient of ";  // as autodiff calls it
  int order = 0;
  std::string_view name = attrs.name;
  for (; name.starts_with(kGradient); name.remove_prefix(kGradient.size())) ++order;
  return order;
}

std::vector<std::uint8_t> for_gradients_only(const Graph& graph, int order,
                                             const std::vector<std::uint8_t>& wanted) {
  // Forwards: what depends on gradients. Backwards: what anything else needs.
  std::vector<std::uint8_t> is_gradient(graph.types.size()), is_needed(graph.types.size());
  for (const OpRecord& record : graph.records) {
    const auto in = graph.inputs_of(record);
    const bool is_one =
        (record.op == &loop_op && gradient_order(get<LoopAttrs>(record.attrs.get())) > order) ||
        std::any_of(in.begin(), in.end(), [&](ValueId v) { return is_gradient[v]; });
    for (const ValueId v : graph.outputs_of(record)) is_gradient[v] = is_one;
  }
  for (std::size_t k = 0; k < graph.outputs.size(); ++k)
    if (wanted[k] && !is_gradient[graph.outputs[k]]) is_needed[graph.outputs[k]] = 1;
  for (std::size_t r = graph.records.size(); r-- > 0;) {
    const OpRecord& record = graph.records[r];
    const auto out = graph.outputs_of(record);
    if (!out.empty() && is_gradient[out[0]]) continue;
    if (has_effects(record) ||
        std::any_of(out.begin(), out.end(), [&](ValueId v) { return is_needed[v]; }))
      for (const ValueId v : graph.inputs_of(record)) is_needed[v] = 1;
  }
  for (std::uint8_t& value : is_needed) value = !value;
  return is_needed;
}

}  // namespace reel
