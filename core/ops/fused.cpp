#include "reel/core/ops/fused.h"

#include "reel/core/dim_env.h"
#include "reel/core/graph_builder.h"
#include "reel/core/tensor.h"

namespace reel {
namespace {

void fused_type(TypeArgs& a) {
  const SubGraph& body = a.attr<FusedAttrs>().body;
  const Graph& graph = *body.graph;
  DimEnv env = DimEnv::renaming(body.env());
  for (std::size_t i = 0; i < a.in.size(); ++i) env.bind(graph.types[graph.inputs[i]], a.in[i]);
  for (const ValueId v : graph.outputs) a.out.push_back(env.resolve(graph.types[v]));
}

void fused_kernel(KernelArgs& a) {
  const SubGraph& body = a.attr<FusedAttrs>().body;
  Tensors in;
  for (const OpInput& input : a.in) in.push_back(*input.tensor);
  DimEnv env = body.env();
  const Tensors made = replay(*body.graph, in, env);
  std::copy(made.begin(), made.end(), a.out.begin());
}

}  // namespace

const Op fused_op{
    .name = "fused",
    .type = fused_type,
    .kernel = fused_kernel,
    .no_vjp = "made of graphs whose gradients are taken already",
    .samples = [] { return OpSamples{}; },
};

}  // namespace reel
