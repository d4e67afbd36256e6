#include "reel/trace/passes/hoisting/capture_constant_slices.h"

#include <map>

#include "reel/core/ops/loop/loop.h"
#include "reel/trace/passes/analysis/liveness.h"
#include "reel/trace/passes/support/loop_leaves.h"
#include "reel/trace/passes/support/sub_graphs.h"

namespace reel {
namespace {

/// Stack of one repeated value -> that value.
using Constants = std::map<ValueId, ValueId>;

void find_constants(const LoopAttrs& loop, std::span<const ValueId> in,
                    std::span<const ValueId> out, Constants& constants) {
  const auto captures = operands_of(loop, in).captures;
  const auto formals = body_inputs(loop).captures;
  for (std::size_t j = 0; j < loop.stacks.size(); ++j)
    for (std::size_t i = 0; !loop.stacks[j].is_list && i < formals.size(); ++i)
      if (body_outputs(loop).stacks[j] == formals[i])
        constants[results_of(loop, out).stacks[j]] =
            captures[static_cast<std::size_t>(loop.body_captures[i])];
}

/// Turns constant slices of the loop into captures. in: the op's inputs, changed to match.
void capture_constants(LoopAttrs& loop, std::vector<ValueId>& in, const Constants& constants) {
  Ref<Graph> body(new Graph(*loop.body.graph));
  std::vector<std::pair<ValueId, ValueId>> captured;  // operand, input of the body
  for (std::size_t i = loop.slices.size(); i-- > 0;) {
    const ValueId& slices = operands_of(loop, in).slices[i];
    const auto found = constants.find(slices);
    const bool reads_running =
        !loop.has_entries() ||
        (loop.slices[i].fill == FinishedFill::running && loop.slices[i].is_in_memory());
    if (found == constants.end() || !reads_running) continue;
    captured.emplace_back(found->second,
                          take(body->inputs, body_inputs_of(loop, body->inputs).slices[i]));
    take(in, slices);
    loop.slices.erase(loop.slices.begin() + static_cast<std::ptrdiff_t>(i));
    --body->formal_count;
  }
  if (captured.empty()) return;
  for (const auto& [operand, formal] : captured) add_body_capture(loop, in, operand, *body, formal);
  body->seal();
  DimEnv names = loop.body.env();
  loop.body = make_sub_graph(std::move(body), names);
}

}  // namespace

Ref<Graph> capture_constant_slices(const Graph& graph) {
  Constants constants;
  return with_loops(graph, capture_constant_slices,
                    [&](const OpRecord& record, LoopAttrs& loop, std::vector<ValueId>& inputs) {
                      if (bound_says_all(loop, graph.types_of(inputs)))
                        capture_constants(loop, inputs, constants);
                      find_constants(loop, inputs, graph.outputs_of(record), constants);
                    });
}

}  // namespace reel
