#include "reel/trace/passes/forwarded_outputs.h"

#include <optional>

#include "reel/core/ops/loop.h"
#include "reel/trace/passes/sub_graphs.h"

namespace reel {
namespace {

/// The slices that a stack hands on, by their place among the loop's inputs; -1 for none.
int slices_of(const LoopAttrs& attrs, int stack, const TensorType& type,
              std::span<const ValueId> in, const Graph& graph) {
  if (attrs.cond || !attrs.entry_dims.empty() || attrs.makes_dim || attrs.is_list(stack)) return -1;
  const Graph& body = *attrs.body.graph;
  for (int i = 0; i < attrs.slices; ++i) {
    if (body.outputs[attrs.carries + stack] != body.inputs[1 + attrs.carries + i]) continue;
    const std::size_t place = attrs.first_slice() + i;
    const bool is_known = type.dims()[0].is_named() || type.dims()[0].has_size();
    if (is_known && graph.types[in[place]] == type) return static_cast<int>(place);
  }
  return -1;
}

/// An output before this one that takes the same in the same way.
std::optional<std::size_t> same_before(const LoopAttrs& attrs, std::size_t output) {
  const Graph& body = *attrs.body.graph;
  const std::size_t first = output < attrs.first_sum() ? attrs.first_stack() : attrs.first_sum();
  const auto is_same = [&](std::size_t other) {
    if (body.outputs[other] != body.outputs[output] ||
        attrs.collects_output(other) != attrs.collects_output(output))
      return false;
    if (output >= attrs.first_sum()) return true;
    const std::size_t i = output - first, j = other - first;
    return attrs.stack_kinds[i] == attrs.stack_kinds[j] &&
           (attrs.makes_dim || attrs.stack_dims[i] == attrs.stack_dims[j]);
  };
  for (std::size_t other = first; other < output; ++other)
    if (is_same(other)) return other;
  return std::nullopt;
}

}  // namespace

Ref<Graph> forwarded_outputs(const Graph& graph) {
  Ref<Graph> result(new Graph(graph));
  result->records.clear();
  result->operands.clear();
  std::vector<ValueId> value(graph.types.size());
  for (ValueId v = 0; v < value.size(); ++v) value[v] = v;
  std::vector<std::uint8_t> is_trips(graph.types.size(), 0);
  for (const OpRecord& record : graph.records) {
    std::vector<ValueId> in;
    for (const ValueId v : graph.inputs_of(record)) in.push_back(value[v]);
    const auto out = graph.outputs_of(record);
    result->append(record, with_sub_graphs(record, forwarded_outputs), in, out);
    if (record.op != &loop_op) continue;
    const auto& attrs = get<LoopAttrs>(record.attrs.get());
    for (int i = 0; i < attrs.stacks; ++i) {
      const ValueId stack = out[attrs.first_stack() + i];
      const int slices = slices_of(attrs, i, graph.types[stack], in, graph);
      if (slices >= 0) value[stack] = in[slices];
    }
    for (std::size_t i = attrs.first_stack(); i < attrs.trips_output(); ++i) {
      const auto same = value[out[i]] == out[i] ? same_before(attrs, i) : std::nullopt;
      if (same && graph.types[out[i]] == graph.types[out[*same]]) value[out[i]] = value[out[*same]];
    }
    const ValueId trips = out[attrs.trips_output()];
    if (!attrs.cond && attrs.has_bound && is_trips[in[0]])
      value[trips] = in[0];
    else
      is_trips[trips] = 1;
  }
  for (ValueId& v : result->outputs) v = value[v];
  result->seal();
  return result;
}

}  // namespace reel
