#include "reel/trace/passes/pipeline.h"

#include <numeric>

#include "reel/core/merge_equal.h"
#include "reel/core/ops/loop.h"
#include "reel/core/tensor.h"
#include "reel/trace/passes/batch_over_time.h"
#include "reel/trace/passes/constant_slices.h"
#include "reel/trace/passes/drop_dead.h"
#include "reel/trace/passes/forwarded_outputs.h"
#include "reel/trace/passes/fuse_pointwise.h"
#include "reel/trace/passes/hoist_invariants.h"
#include "reel/trace/passes/invariant_carries.h"
#include "reel/trace/passes/join_loops.h"
#include "reel/trace/passes/pack_weights.h"
#include "reel/trace/passes/saved_of_ended.h"

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

Optimised optimise(Ref<Graph> graph) {
  check(*graph, "recording");
  const auto renames = graph->renames;
  std::vector<int> captures(graph->capture_count());
  std::iota(captures.begin(), captures.end(), 0);
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
    std::vector<int> kept;
    graph = drop_dead(*graph, &kept);
    check(*graph, "drop_dead");
    for (int& i : kept) i = captures[static_cast<std::size_t>(i)];
    captures = std::move(kept);
  }
  graph->renames = renames;
  return {std::move(graph), std::move(captures)};
}

Optimised optimise_for_interpreter(const Graph& graph) {
  Ref<Graph> hoisted = hoist_invariants(graph);
  check(*hoisted, "hoist_invariants");
  return optimise(std::move(hoisted));
}

Optimised optimise_for_plan(const Graph& graph, const Passes& passes) {
  Ref<Graph> start = saved_of_ended(graph);
  check(*start, "saved_of_ended");
  if (passes.batch_over_time) start = batch_over_time(*start);
  check(*start, "batch_over_time");
  start = constant_slices(*start);
  check(*start, "constant_slices");
  Optimised result = optimise(std::move(start));
  if (passes.pack_weights) result.graph = pack_weights(*result.graph);
  check(*result.graph, "pack_weights");
  if (passes.fuse_pointwise) result.graph = fuse_pointwise(*result.graph);
  check(*result.graph, "fuse_pointwise");
  return result;
}

}  // namespace reel
