#include "reel/autodiff/loop_cost_types.h"

#include "reel/core/graph/passes/inline_checkpointed.h"
#include "reel/core/ops/control/nested_step_types.h"

namespace reel {
namespace {

/// Returns the types that an iteration of the gradient reads and writes.
std::vector<TensorType> step_types(LoopApplication& loop, const ReversedGraph& reversed) {
  std::vector<TensorType> types;
  const auto add_step_of = [&](const TensorType& all) {
    if (!all.is_list()) types.push_back(slice_type(all));
  };
  const auto add_slices = [&](const std::vector<std::size_t>& body_inputs) {
    for (const std::size_t input : body_inputs)
      if (body_input_at(loop.attrs, input).is(LeafKind::slice))
        add_step_of(loop.types[operand_of_input(loop.attrs, input)]);
  };
  for (const std::size_t output : reversed.cotangents)
    if (body_output_at(loop.attrs, output).is(LeafKind::stack))
      add_step_of(loop.at.output_type(output));
  add_slices(reversed.inputs);
  for (const std::size_t output : reversed.kept) add_step_of(loop.at.output_type(output));
  for (const Residual& residual : reversed.residuals)
    if (!residual.is_local && !residual.type.is_list())
      types.push_back(loop.env.resolve(residual.type));
  add_slices(reversed.wanted);
  return types;
}

}  // namespace

std::vector<TensorType> gradient_cost_types(LoopApplication& loop, const ReversedGraph& reversed,
                                            bool is_full) {
  if (!loop.attrs.chunking.cost_types.empty()) return loop.attrs.chunking.cost_types;
  if (!is_full) return {};
  LoopAttrs plain = loop.attrs;
  const bool is_plain = !has_checkpointed(loop.body);
  if (!is_plain) plain.body = make_sub_graph(inline_checkpointed(loop.body), loop.env);
  std::vector<TensorType> nested = nested_step_types(plain, loop.types);
  if (!nested.empty()) return nested;
  if (is_plain && !has_policy(loop.attrs.policy)) return step_types(loop, reversed);
  return step_types(loop, reverse_graph(*plain.body.graph, reversal_spec(loop, {})));
}

}  // namespace reel
