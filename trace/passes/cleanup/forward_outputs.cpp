#include "reel/trace/passes/cleanup/forward_outputs.h"

#include <optional>
#include <unordered_map>
#include <vector>

#include "reel/core/ops/control/loop.h"
#include "reel/trace/passes/support/sub_graphs.h"

namespace reel {
namespace {

/// Looks up stacks and sums of a loop by body value, without searching all leaves for each.
class HandedOn {
 public:
  explicit HandedOn(const LoopAttrs& attrs) : attrs_(attrs), body_(*attrs.body.graph) {
    for (int i = 0; i < attrs.slices; ++i)
      slices_[body_.inputs[1 + attrs.carries + i]].push_back(static_cast<std::size_t>(i));
  }

  /// Returns the place among the loop's inputs of the slices that the stack repeats unchanged; -1
  /// if there are none.
  int slices_of(int stack, const TensorType& type, std::span<const ValueId> in,
                const Graph& graph) const {
    if (attrs_.cond || !attrs_.entry_dims.empty() || attrs_.makes_dim || attrs_.is_list(stack))
      return -1;
    const auto found = slices_.find(body_.outputs[attrs_.carries + stack]);
    if (found == slices_.end()) return -1;
    const bool is_known = type.dims()[0].is_named() || type.dims()[0].has_size();
    for (const std::size_t i : found->second)
      if (const std::size_t place = attrs_.first_slice() + i;
          is_known && graph.types[in[place]] == type)
        return static_cast<int>(place);
    return -1;
  }

  /// Returns an earlier output that takes the same value in the same way. Requires calls in the
  /// order of outputs.
  std::optional<std::size_t> same_before(std::size_t output) {
    std::vector<std::size_t>& others = outputs_[body_.outputs[output]];
    for (const std::size_t other : others)
      if (is_same(output, other)) return other;
    others.push_back(output);
    return std::nullopt;
  }

 private:
  bool is_same(std::size_t output, std::size_t other) const {
    const bool is_sum = output >= attrs_.first_sum();
    if (is_sum != (other >= attrs_.first_sum()) ||
        attrs_.output_adds_finished(other) != attrs_.output_adds_finished(output))
      return false;
    if (is_sum) return true;
    const std::size_t i = output - attrs_.first_stack(), j = other - attrs_.first_stack();
    return attrs_.stack_kinds[i] == attrs_.stack_kinds[j] &&
           (attrs_.makes_dim || attrs_.stack_dims[i] == attrs_.stack_dims[j]);
  }

  const LoopAttrs& attrs_;
  const Graph& body_;
  std::unordered_map<ValueId, std::vector<std::size_t>> slices_;   ///< by value of the body
  std::unordered_map<ValueId, std::vector<std::size_t>> outputs_;  ///< the first of each kind
};

}  // namespace

Ref<Graph> forward_outputs(const Graph& graph) {
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
    result->append(record, with_sub_graphs(record, forward_outputs), in, out);
    if (record.op != &loop_op) continue;
    const auto& attrs = get<LoopAttrs>(record.attrs.get());
    HandedOn handed_on(attrs);
    for (int i = 0; i < attrs.stacks; ++i) {
      const ValueId stack = out[attrs.first_stack() + i];
      const int slices = handed_on.slices_of(i, graph.types[stack], in, graph);
      if (slices >= 0) value[stack] = in[slices];
    }
    for (std::size_t i = attrs.first_stack(); i < attrs.trips_output(); ++i) {
      const auto same = handed_on.same_before(i);
      if (same && value[out[i]] == out[i] && graph.types[out[i]] == graph.types[out[*same]])
        value[out[i]] = value[out[*same]];
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
