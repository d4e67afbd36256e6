#include "reel/trace/passes/cleanup/forward_outputs.h"

#include <optional>
#include <unordered_map>
#include <vector>

#include "reel/core/graph/graph_rewriter.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/trace/passes/support/sub_graphs.h"

namespace reel {
namespace {

/// Looks up stacks and sums of a loop by body value, without searching all leaves for each.
class HandedOn {
 public:
  explicit HandedOn(const LoopAttrs& attrs) : attrs_(attrs), body_(*attrs.body.graph) {
    const auto slices = body_inputs(attrs).slices;
    for (std::size_t i = 0; i < slices.size(); ++i) slices_[slices[i]].push_back(i);
  }

  /// Returns the operand if the stack repeats its slices unchanged; nothing if there is none.
  /// slices: operands of the op.   type: of the stack.
  std::optional<ValueId> slices_of(std::size_t stack, const TensorType& type,
                                   std::span<const ValueId> slices, const Graph& graph) const {
    if (attrs_.cond || attrs_.has_entries() || attrs_.trips.makes_dim ||
        attrs_.stacks[stack].is_list)
      return std::nullopt;
    const auto found = slices_.find(body_outputs(attrs_).stacks[stack]);
    if (found == slices_.end()) return std::nullopt;
    if (is_unknown(type.dims()[0])) return std::nullopt;
    for (const std::size_t i : found->second)
      if (graph.types[slices[i]] == type) return slices[i];
    return std::nullopt;
  }

  /// Returns an earlier output, a stack or sum, that takes the same value in the same way. Requires
  /// calls in the order of outputs.
  std::optional<std::size_t> same_before(std::size_t output) {
    std::vector<std::size_t>& others = outputs_[body_.outputs[output]];
    for (const std::size_t other : others)
      if (is_same(body_output_at(attrs_, output), body_output_at(attrs_, other))) return other;
    others.push_back(output);
    return std::nullopt;
  }

 private:
  bool is_same(LoopLeaf a, LoopLeaf b) const {
    if (a.kind != b.kind) return false;
    return a.is(LeafKind::sum) ? attr::same(attrs_.sums[a.index], attrs_.sums[b.index])
                               : attr::same(attrs_.stacks[a.index], attrs_.stacks[b.index]);
  }

  const LoopAttrs& attrs_;
  const Graph& body_;
  std::unordered_map<ValueId, std::vector<std::size_t>> slices_;   ///< by value of the body
  std::unordered_map<ValueId, std::vector<std::size_t>> outputs_;  ///< the first of each kind
};

}  // namespace

Ref<Graph> forward_outputs(const Graph& graph) {
  GraphRewriter to(graph);
  std::vector<std::uint8_t> is_trips(graph.types.size(), 0);
  for (const OpRecord& record : graph.records) {
    const std::vector<ValueId> in = to.inputs_of(record);
    const auto out = graph.outputs_of(record);
    to.keep(record, with_sub_graphs(record, forward_outputs), in);
    if (record.op != &loop_op) continue;
    const auto& attrs = get<LoopAttrs>(record.attrs.get());
    const auto operands = operands_of(attrs, in);
    const auto results = results_of(attrs, out);
    HandedOn handed_on(attrs);
    for (std::size_t i = 0; i < results.stacks.size(); ++i) {
      const ValueId stack = results.stacks[i];
      if (const auto slices = handed_on.slices_of(i, graph.types[stack], operands.slices, graph))
        to.replace(stack, *slices);
    }
    for (std::size_t i = attrs.carries.size(); i < attrs.body.graph->outputs.size(); ++i) {
      const auto same = handed_on.same_before(i);
      if (same && to[out[i]] == out[i] && graph.types[out[i]] == graph.types[out[*same]])
        to.replace(out[i], to[out[*same]]);
    }
    if (!attrs.cond && operands.bound && is_trips[*operands.bound])
      to.replace(results.trips, *operands.bound);
    else
      is_trips[results.trips] = 1;
  }
  return to.finish();
}

}  // namespace reel
