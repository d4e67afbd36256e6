#include "reel/core/ops/control/recompute.h"

#include "reel/core/functions/creation.h"
#include "reel/core/graph/graph_builder.h"
#include "reel/core/graph/graph_rewriter.h"

namespace reel {

ValueId append_steps(Graph& body) {
  const RecordedGraph zero =
      record_graph("steps", {}, [](const Tensors&) { return Tensors{zeros({2}, i64)}; });
  return inline_graph(body, *zero.graph, std::span<const ValueId>())[0];
}

const Op recompute_op{
    .name = "recompute",
    .type =
        [](TypeArgs& a) {
          const RecomputeAttrs& attrs = a.attr<RecomputeAttrs>();
          const LoopAttrs& loop = attrs.saving();
          TypeList all;
          TypeArgs rule{loop_op, attrs.loop.get(), a.in.first(attrs.loop_inputs(a.in.size())), all};
          loop_op.type(rule);
          for (const TensorType& residual :
               results_of(loop, all.span()).stacks.subspan(attrs.first_residual))
            a.out.push_back(residual);
        },
    .kernel = run_recompute,
    .storage = OpStorage::any,
    .vjp = recompute_vjp,
    .reads = {.inputs = kAll},
    .samples = [] { return OpSamples{}; },
    .takes_lists = kAll,
    .takes_unranked = true,
};

}  // namespace reel
