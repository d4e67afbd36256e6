#include "reel/core/ops/control/cond.h"

#include "reel/core/ops/loop/joined_dims.h"

namespace reel {
namespace {

void cond_type(TypeArgs& a) {
  const CondAttrs& attrs = a.attr<CondAttrs>();
  DimEnv env = attrs.on_true.env();
  const Graph& graph = *attrs.on_true.graph;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i)
    env.bind(graph.types[graph.inputs[i]], a.in[1 + attrs.true_captures[i]]);
  const Graph& other = *attrs.on_false.graph;
  JoinedDims joined(env);
  for (std::size_t i = 0; i < graph.outputs.size(); ++i)
    a.out.push_back(joined.of(graph.types[graph.outputs[i]], other.types[other.outputs[i]]));
}

}  // namespace

const Op cond_op{
    .name = "cond",
    .type = cond_type,
    .kernel = run_cond,
    .vjp = cond_vjp,
    .reads = {.inputs = kAll},
    .samples = [] { return OpSamples{}; },
    .kernel_decides_types = true,
    .takes_lists = kAll & ~1u,
    .takes_unranked = true,
};

}  // namespace reel
