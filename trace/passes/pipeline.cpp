#include "reel/trace/passes/pipeline.h"

#include "reel/core/merge_equal.h"
#include "reel/core/ops/loop.h"
#include "reel/core/tensor.h"
#include "reel/trace/passes/drop_dead.h"
#include "reel/trace/passes/forwarded_outputs.h"
#include "reel/trace/passes/hoist_invariants.h"
#include "reel/trace/passes/invariant_carries.h"
#include "reel/trace/passes/join_loops.h"

namespace reel {
namespace {

void check([[maybe_unused]] const Graph& graph, [[maybe_unused]] const char* pass) {
#ifndef NDEBUG
  verify(graph, pass);
#endif
}

/// How much there is, sub-graphs included: what shrinks until the fixpoint.
std::size_t size_of_text(const Graph& graph) {
  std::size_t result = graph.operands.size() + graph.inputs.size() + graph.outputs.size();
  for (const OpRecord& record : graph.records) {
    result += 1;
    if (record.op == &loop_op) {
      const auto& attrs = get<LoopAttrs>(record.attrs.get());
      result += size_of_text(*attrs.body.graph) + attrs.carries +
                (attrs.cond ? size_of_text(*attrs.cond.graph) : 0);
    } else if (record.op == &cond_op) {
      const auto& attrs = get<CondAttrs>(record.attrs.get());
      result += size_of_text(*attrs.on_true.graph) + size_of_text(*attrs.on_false.graph);
    }
  }
  return result;
}

}  // namespace

Ref<Graph> optimise(Ref<Graph> graph, Tensors& captured) {
  check(*graph, "recording");
  const auto renames = graph->renames;
  for (std::size_t before = 0; before != size_of_text(*graph);) {
    before = size_of_text(*graph);
    graph = merge_equal(*graph);
    check(*graph, "merge_equal");
    graph = invariant_carries(*graph);
    check(*graph, "invariant_carries");
    graph = forwarded_outputs(*graph);
    check(*graph, "forwarded_outputs");
    graph = join_loops(*graph);
    check(*graph, "join_loops");
    graph = hoist_invariants(*graph);
    check(*graph, "hoist_invariants");
    std::vector<int> kept;
    graph = drop_dead(*graph, &kept);
    check(*graph, "drop_dead");
    Tensors still;
    for (const int i : kept) still.push_back(captured[i]);
    captured = std::move(still);
  }
  graph->renames = renames;
  return graph;
}

}  // namespace reel
