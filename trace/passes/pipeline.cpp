#include "reel/trace/passes/pipeline.h"

#include <numeric>

#include "reel/core/graph/passes/inline_checkpointed.h"
#include "reel/core/graph/passes/merge_equal.h"
#include "reel/core/ops/control/loop.h"
#include "reel/core/types/tensor.h"
#include "reel/trace/passes/cleanup/drop_dead.h"
#include "reel/trace/passes/cleanup/fold_constants.h"
#include "reel/trace/passes/cleanup/forward_outputs.h"
#include "reel/trace/passes/fusion/fuse_pointwise.h"
#include "reel/trace/passes/hoisting/batch_across_iterations.h"
#include "reel/trace/passes/hoisting/capture_constant_slices.h"
#include "reel/trace/passes/hoisting/capture_invariant_carries.h"
#include "reel/trace/passes/hoisting/hoist_embedding_products.h"
#include "reel/trace/passes/hoisting/hoist_invariants.h"
#include "reel/trace/passes/hoisting/pack_weights.h"
#include "reel/trace/passes/loop_structure/chunk_loops.h"
#include "reel/trace/passes/loop_structure/feed_chunks.h"
#include "reel/trace/passes/loop_structure/group_pipelined_loops.h"
#include "reel/trace/passes/loop_structure/join_loops.h"
#include "reel/trace/passes/loop_structure/split_loops.h"
#include "reel/trace/passes/residuals/relax_finished_residuals.h"
#include "reel/trace/passes/residuals/sink_updates.h"

namespace reel {
namespace {

/// Returns the graph that a pass made, with the names of the graph it was made from, so that passes
/// need not copy them. Debug builds verify it.
Ref<Graph> checked(Ref<Graph> graph, const Graph& from, [[maybe_unused]] const char* pass) {
  graph->renames = from.renames;
  graph->input_names = from.input_names;
  graph->output_names = from.output_names;
#ifndef NDEBUG
  verify(*graph, pass);
#endif
  return graph;
}

/// Returns the size of a graph, sub-graphs included. It shrinks until the fixpoint.
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

Optimised as_it_is(Ref<Graph> graph) {
  std::vector<int> captures(graph->capture_count());
  std::iota(captures.begin(), captures.end(), 0);
  return {std::move(graph), std::move(captures)};
}

Optimised optimise(Ref<Graph> recorded) {
  auto [graph, captures] = as_it_is(checked(recorded, *recorded, "recording"));
  for (std::size_t before = 0; before != size_of_text(*graph);) {
    before = size_of_text(*graph);
    graph = checked(fold_constants(*graph), *graph, "fold_constants");
    graph = checked(merge_equal(*graph), *graph, "merge_equal");
    graph = checked(capture_invariant_carries(*graph), *graph, "capture_invariant_carries");
    graph = checked(forward_outputs(*graph), *graph, "forward_outputs");
    graph = checked(join_loops(*graph), *graph, "join_loops");
    std::vector<int> kept;
    graph = checked(drop_dead(*graph, &kept), *graph, "drop_dead");
    for (int& i : kept) i = captures[static_cast<std::size_t>(i)];
    captures = std::move(kept);
  }
  return {std::move(graph), std::move(captures)};
}

Optimised optimise_for_interpreter(const Graph& graph) {
  return optimise(checked(hoist_invariants(graph), graph, "hoist_invariants"));
}

Optimised optimise_for_plan(const Graph& graph, const Passes& passes) {
  Ref<Graph> result = checked(inline_checkpointed(graph), graph, "inline_checkpointed");
  result = checked(relax_finished_residuals(*result), graph, "relax_finished_residuals");
  const auto pass = [&](bool is_made, const char* name, auto&& make) {
    if (is_made) result = checked(make(*result), graph, name);
  };
  const Packs packs = packs_of(passes);
  const bool batches = passes.batch_over_time, chunks = batches && passes.chunk_loops;
  pass(passes.hoist_invariants, "hoist_once", hoist_once);
  // Covers loops of unknown length and loops that slice or stack lists.
  pass(passes.hoist_invariants, "hoist_all_invariants", hoist_all_invariants);
  pass(passes.multiply_tables, "hoist_embedding_products", [&](const Graph& from) {
    return hoist_embedding_products(from, {packs, passes.multiply_any});
  });
  pass(batches, "capture_constant_slices", capture_constant_slices);
  pass(batches && passes.split_loops, "split_loops", split_loops);
  pass(chunks, "chunk_loops",
       [&](const Graph& from) { return chunk_loops(from, passes.chunk_steps); });
  pass(chunks && passes.split_loops, "split_loops", split_loops);
  pass(chunks, "feed_chunks", feed_chunks);
  pass(batches, "batch_across_iterations",
       [&](const Graph& from) { return batch_across_iterations(from, packs); });
  pass(true, "capture_constant_slices", capture_constant_slices);
  Optimised optimised = passes.simplify ? optimise(std::move(result)) : as_it_is(std::move(result));
  result = std::move(optimised.graph);
  pass(passes.pack_weights, "pack_weights",
       [&](const Graph& from) { return pack_weights(from, packs); });
  pass(passes.fuse_pointwise, "fuse_pointwise", fuse_pointwise);
  pass(chunks && passes.adjoin_loops, "group_pipelined_loops", group_pipelined_loops);
  pass(true, "sink_updates", sink_updates);
  optimised.graph = std::move(result);
  return optimised;
}

}  // namespace reel
