#include "reel/trace/passes/hoisting/capture_constant_slices.h"

#include <map>

#include "reel/core/ops/control/loop.h"
#include "reel/trace/passes/analysis/liveness.h"
#include "reel/trace/passes/support/sub_graphs.h"

namespace reel {
namespace {

/// Stack of one repeated value -> that value.
using Constants = std::map<ValueId, ValueId>;

void find_constants(const LoopAttrs& loop, std::span<const ValueId> in,
                    std::span<const ValueId> out, Constants& constants) {
  const Graph& body = *loop.body.graph;
  for (std::size_t j = 0; j < static_cast<std::size_t>(loop.stacks); ++j) {
    if (loop.is_list(j)) continue;
    const std::size_t k = loop.first_stack() + j;
    for (std::size_t i = 0; i < loop.body_captures.size(); ++i)
      if (body.outputs[k] == body.inputs[body.formal_count + i])
        constants[out[k]] =
            in[loop.first_capture() + static_cast<std::size_t>(loop.body_captures[i])];
  }
}

/// Turns constant slices of the loop into captures. in: the op's inputs, changed to match.
void capture_constants(LoopAttrs& loop, std::vector<ValueId>& in, const Constants& constants) {
  Ref<Graph> body(new Graph(*loop.body.graph));
  const std::size_t own = 1 + static_cast<std::size_t>(loop.carries);
  std::vector<ValueId> captured, values;  // of the body, outside
  for (std::size_t i = static_cast<std::size_t>(loop.slices); i-- > 0;) {
    const auto found = constants.find(in[loop.first_slice() + i]);
    const auto fill = loop.fills.begin() + loop.carries + static_cast<std::ptrdiff_t>(i);
    const bool sees_live = loop.entry_dims.empty() || *fill == Fill::live;
    if (found == constants.end() || !sees_live) continue;
    values.push_back(found->second);
    captured.push_back(body->inputs[own + i]);
    body->inputs.erase(body->inputs.begin() + static_cast<std::ptrdiff_t>(own + i));
    in.erase(in.begin() + static_cast<std::ptrdiff_t>(loop.first_slice() + i));
    loop.fills.erase(fill);
    --loop.slices;
    --body->formal_count;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    loop.body_captures.push_back(static_cast<int>(in.size() - loop.first_capture()));
    loop.fills.push_back(Fill::live);
    in.push_back(values[i]);
    body->inputs.push_back(captured[i]);
  }
  if (values.empty()) return;
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
