#include "reel/core/ops/control/fused.h"

#include "reel/core/dims/dim_env.h"
#include "reel/core/graph/graph_builder.h"
#include "reel/core/ops/control/replay.h"
#include "reel/core/types/tensor.h"

namespace reel {
namespace {

/// Named dims come from the environment. Plain sizes may differ from the graph's, if a loop runs on
/// some of its rows; then each op's type rule is evaluated again.
void fused_type(TypeArgs& a) {
  const SubGraph& body = a.attr<FusedAttrs>().body;
  const Graph& graph = *body.graph;
  DimEnv env = DimEnv::renaming(body.env());
  bool is_as_recorded = true;
  for (std::size_t i = 0; i < a.in.size(); ++i) {
    const TensorType& formal = graph.types[graph.inputs[i]];
    env.bind(formal, a.in[i]);
    is_as_recorded = is_as_recorded && (formal.is_named() || formal.sizes() == a.in[i].sizes());
  }
  if (is_as_recorded) {
    for (const ValueId v : graph.outputs) a.out.push_back(env.resolve(graph.types[v]));
    return;
  }
  std::vector<TensorType> types = graph.types;
  for (std::size_t i = 0; i < a.in.size(); ++i) types[graph.inputs[i]] = a.in[i];
  std::vector<TensorType> in;
  for (const OpRecord& record : graph.records) {
    in.clear();
    for (const ValueId v : graph.inputs_of(record)) in.push_back(types[v]);
    const AttrsRef attrs = record.attrs ? record.attrs->resolve(env) : AttrsRef();
    TypeList out;
    TypeArgs rule{*record.op, attrs.get(), in, out};
    record.op->type(rule);
    const auto made = graph.outputs_of(record);
    for (std::size_t k = 0; k < made.size(); ++k) types[made[k]] = out[k];
  }
  for (const ValueId v : graph.outputs) a.out.push_back(types[v]);
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
    .fails = never_fails,
};

}  // namespace reel
