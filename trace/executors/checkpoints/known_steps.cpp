#include "reel/trace/executors/checkpoints/known_steps.h"

#include <algorithm>
#include <vector>

#include "reel/core/ops/loop/loop.h"
#include "reel/trace/executors/checkpoints/checkpoint_schedule.h"
#include "reel/trace/executors/checkpoints/policy_costs.h"
#include "reel/trace/executors/loop/loop_types.h"

namespace reel {
namespace {

std::vector<TensorType> types_of(std::span<const ValueId> values,
                                 std::span<const TensorType> types) {
  std::vector<TensorType> result;
  for (const ValueId v : values) result.push_back(types[v]);
  return result;
}

}  // namespace

std::size_t output_of(const Graph& graph, const OpRecord& maker, ValueId v) {
  const auto out = graph.outputs_of(maker);
  return static_cast<std::size_t>(std::find(out.begin(), out.end(), v) - out.begin());
}

std::optional<std::int64_t> known_steps(const Graph& graph, const LoopAttrs& loop,
                                        std::span<const ValueId> inputs,
                                        std::span<const TensorType> types,
                                        const KnownNumbers& numbers) {
  if (const auto steps = steps_of(loop, types_of(inputs, types))) return steps;
  const auto operands = operands_of(loop, inputs);
  if (loop.cond || loop.chunking.over_chunks || operands.chunk || !operands.bound)
    return std::nullopt;
  std::optional<std::int64_t> result = known_number(graph, *operands.bound, numbers);
  if (!result) return result;
  result = std::max<std::int64_t>(*result, 0);
  for (const ValueId v : operands.slices) {
    const TensorType& slices = types[v];
    if (slices.is_list() || !slices.dims()[0].has_size()) return std::nullopt;
    result = std::min(*result, slices.dims()[0].size());
  }
  return result;
}

std::optional<std::int64_t> known_steps(const Graph& graph, const OpRecord& loop,
                                        std::span<const TensorType> types,
                                        const KnownNumbers& numbers) {
  return known_steps(graph, get<LoopAttrs>(loop.attrs.get()), graph.inputs_of(loop), types,
                     numbers);
}

std::optional<std::int64_t> known_tensors(const Graph& graph, ValueId v,
                                          std::span<const TensorType> types,
                                          const KnownNumbers& numbers) {
  if (!types[v].is_list()) return 1;
  const OpRecord* const maker = record_of(graph, v);
  if (!maker || maker->op != &loop_op) return std::nullopt;
  const auto& loop = get<LoopAttrs>(maker->attrs.get());
  const LoopLeaf leaf = result_at(loop, output_of(graph, *maker, v));
  if (!leaf.is(LeafKind::stack) || !loop.stacks[leaf.index].is_list) return std::nullopt;
  const auto steps = known_steps(graph, *maker, types, numbers);
  if (!steps) return steps;
  if (loop.stacks[leaf.index].is_checkpoint())
    return checkpoints_left(loop, *steps, types_of(graph.inputs_of(*maker), types));
  const Graph& body = *loop.body.graph;
  const auto of_step = known_tensors(body, body_outputs(loop).stacks[leaf.index], body.types);
  return of_step ? std::optional(*steps * *of_step) : std::nullopt;
}

std::optional<std::int64_t> checkpoints_left(const LoopAttrs& loop, std::int64_t steps,
                                             std::span<const TensorType> inputs) {
  const auto state = bytes_of(operands_of(loop, inputs).carries);
  if (!state) return std::nullopt;
  CheckpointSchedule kept(loop.policy.steps, loop.policy.bytes ? slots_of(loop, *state) : 0);
  for (std::int64_t k = 0; k < steps; ++k) kept.before(k);
  return kept.taken();
}

}  // namespace reel
