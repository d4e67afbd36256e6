#include "reel/autodiff/derivative_reachability.h"

#include <algorithm>

namespace reel {

std::vector<std::uint8_t> reachable_inputs(const Graph& graph,
                                           const std::vector<std::uint8_t>& outputs) {
  std::vector<std::uint8_t> is_reached(graph.types.size(), 0);
  const auto is_path = [&](ValueId v) { return is_float(graph.types[v].dtype()); };
  for (std::size_t i = 0; i < graph.outputs.size(); ++i)
    if (outputs[i] && is_path(graph.outputs[i])) is_reached[graph.outputs[i]] = 1;
  for (std::size_t r = graph.records.size(); r-- > 0;) {
    const OpRecord& record = graph.records[r];
    const auto out = graph.outputs_of(record);
    if (!record.op->vjp ||
        !std::any_of(out.begin(), out.end(), [&](ValueId v) { return is_reached[v]; }))
      continue;
    for (const ValueId v : graph.inputs_of(record)) is_reached[v] = is_reached[v] || is_path(v);
  }
  std::vector<std::uint8_t> result;
  for (const ValueId v : graph.inputs) result.push_back(is_reached[v]);
  return result;
}

std::vector<std::uint8_t> reachable_outputs(const Graph& graph,
                                            const std::vector<std::uint8_t>& inputs) {
  std::vector<std::uint8_t> is_reached(graph.types.size(), 0);
  const auto is_path = [&](ValueId v) { return is_float(graph.types[v].dtype()); };
  for (std::size_t i = 0; i < graph.inputs.size(); ++i)
    if (inputs[i] && is_path(graph.inputs[i])) is_reached[graph.inputs[i]] = 1;
  for (const OpRecord& record : graph.records) {
    const auto in = graph.inputs_of(record);
    if (!record.op->vjp ||
        !std::any_of(in.begin(), in.end(), [&](ValueId v) { return is_reached[v]; }))
      continue;
    for (const ValueId v : graph.outputs_of(record)) is_reached[v] = is_reached[v] || is_path(v);
  }
  std::vector<std::uint8_t> result;
  for (const ValueId v : graph.outputs) result.push_back(is_reached[v]);
  return result;
}

}  // namespace reel
