#include "reel/trace/passes/pipeline.h"

#include <numeric>

#include "reel/core/graph/passes/inline_checkpointed.h"
#include "reel/core/graph/passes/merge_equal.h"
#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/core/types/tensor.h"
#include "reel/trace/passes/cleanup/drop_dead.h"
#include "reel/trace/passes/cleanup/drop_masks.h"
#include "reel/trace/passes/cleanup/fold_constants.h"
#include "reel/trace/passes/cleanup/forward_outputs.h"
#include "reel/trace/passes/cleanup/share_masked_operands.h"
#include "reel/trace/passes/fusion/fuse_pointwise.h"
#include "reel/trace/passes/fusion/recompute_broadcasts.h"
#include "reel/trace/passes/fusion/scatter_last.h"
#include "reel/trace/passes/fusion/unfold_products.h"
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
#include "reel/trace/passes/loop_structure/rows_first.h"
#include "reel/trace/passes/loop_structure/split_loops.h"
#include "reel/trace/passes/residuals/relax_finished_residuals.h"
#include "reel/trace/passes/residuals/sink_updates.h"
#include "reel/trace/passes/support/graph_dump.h"

namespace reel {
namespace {

/// Applies a pass. The result keeps the names of the graph, so that passes need not copy them.
/// Debug builds verify it.
template <class Pass>
Ref<Graph> apply(GraphDump& dump, const char* name, const Pass& pass, const Graph& graph) {
  Ref<Graph> result = pass(graph);
  result->renames = graph.renames;
  result->input_names = graph.input_names;
  result->output_names = graph.output_names;
#ifndef NDEBUG
  verify(*result, name);
#endif
  dump.after(name, *result);
  return result;
}

/// Returns the size of a graph, sub-graphs included. It shrinks until the fixpoint.
std::size_t size_of_text(const Graph& graph) {
  std::size_t result = graph.operands.size() + graph.inputs.size() + graph.outputs.size();
  for (const OpRecord& record : graph.records) {
    result += 1;
    if (record.op == &loop_op) {
      const auto& attrs = get<LoopAttrs>(record.attrs.get());
      result += size_of_text(*attrs.body.graph) + attrs.carries.size() +
                (attrs.cond ? size_of_text(*attrs.cond.graph) : 0);
    } else if (record.op == &cond_op) {
      const auto& attrs = get<CondAttrs>(record.attrs.get());
      result += size_of_text(*attrs.on_true.graph) + size_of_text(*attrs.on_false.graph);
    }
  }
  return result;
}

/// Applies the passes of every graph until nothing changes.
Optimised simplified(GraphDump& dump, Ref<Graph> recorded) {
  auto [graph, captures] = as_it_is(std::move(recorded));
  const auto pass = [&, &graph = graph](const char* name, const auto& make) {
    graph = apply(dump, name, make, *graph);
  };
  // Each round but the last removes records or leaves. A round sees all loops of a level, so that
  // more rounds than levels are rarely of use.
  constexpr int kMaxRounds = 16;
  std::size_t before = 0;
  for (int round = 0; round < kMaxRounds && before != size_of_text(*graph); ++round) {
    before = size_of_text(*graph);
    // Computes ops on constants.
    pass("fold_constants", fold_constants);
    // Merges records that compute the same values: a loop and its gradient's forward loop run once.
    pass("merge_equal", [](const Graph& from) { return merge_equal(from); });
    // Turns carries that no iteration changes into captures.
    pass("capture_invariant_carries", capture_invariant_carries);
    // Replaces outputs of loops by equal values that exist already.
    pass("forward_outputs", forward_outputs);
    // Merges a loop into the loop that it repeats.
    pass("join_loops", join_loops);
    // Drops records, captures and leaves of loops that nothing reads.
    std::vector<int> kept;
    pass("drop_dead", [&](const Graph& from) { return drop_dead(from, &kept); });
    for (int& i : kept) i = captures[static_cast<std::size_t>(i)];
    captures = std::move(kept);
  }
  return {std::move(graph), std::move(captures)};
}

}  // namespace

Optimised as_it_is(Ref<Graph> graph) {
  std::vector<int> captures(graph->capture_count());
  std::iota(captures.begin(), captures.end(), 0);
  return {std::move(graph), std::move(captures)};
}

Optimised optimise(Ref<Graph> recorded) {
#ifndef NDEBUG
  verify(*recorded, "recording");
#endif
  GraphDump dump(*recorded, "graph");
  return simplified(dump, std::move(recorded));
}

Optimised optimise_for_interpreter(const Graph& graph) {
  GraphDump dump(graph, "interpreter");
  // Hoists element-wise ops on captures out of loops.
  return simplified(dump, apply(dump, "hoist_invariants", hoist_invariants, graph));
}

namespace {

/// The passes of a plan, in their order.
class PlanPipeline {
 public:
  PlanPipeline(const Graph& graph, const Passes& passes)
      : passes_(passes),
        packs_(packs_of(passes)),
        batches_(passes.batch_over_time),
        chunks_(batches_ && passes.chunk_loops),
        dump_(graph, "plan"),
        // Replaces calls of checkpointed functions by their records.
        graph_(apply(dump_, "inline_checkpointed", inline_checkpointed, graph)) {}

  Optimised run() {
    prepare();
    hoist();
    restructure_loops();
    batch();
    Optimised result =
        passes_.simplify ? simplified(dump_, std::move(graph_)) : as_it_is(std::move(graph_));
    graph_ = std::move(result.graph);
    fuse();
    reorder();
    result.graph = std::move(graph_);
    return result;
  }

 private:
  template <class Pass>
  void pass(bool is_on, const char* name, const Pass& make) {
    if (is_on) graph_ = apply(dump_, name, make, *graph_);
  }

  void prepare() {
    // Lets gradient loops read residuals of finished entries as padding.
    pass(true, "relax_finished_residuals", relax_finished_residuals);
    // Lets products read masked operands that exist anyway.
    pass(passes_.simplify, "share_masked_operands", share_masked_operands);
  }

  void hoist() {
    // Hoists ops on captures out of loops along a known dim.
    pass(passes_.hoist_invariants, "hoist_once", hoist_once);
    // Hoists the same out of loops of unknown length and loops that slice or stack lists.
    pass(passes_.hoist_invariants, "hoist_all_invariants", hoist_all_invariants);
    // Moves the rows of captures first, so that loops can run on some rows at a time.
    pass(passes_.cut_rows, "rows_first", rows_first);
    // Multiplies whole tables instead of the table rows that a loop gathers.
    pass(passes_.multiply_tables, "hoist_embedding_products", [&](const Graph& from) {
      return hoist_embedding_products(from, {packs_, passes_.multiply_any});
    });
  }

  void restructure_loops() {
    // Replaces slices that are equal in every iteration by captures.
    pass(batches_, "capture_constant_slices", capture_constant_slices);
    // Splits a loop over several layers into one loop per layer.
    pass(batches_ && passes_.split_loops, "split_loops", split_loops);
    // Runs long loops in chunks of iterations, so that values stay in the cache.
    pass(chunks_, "chunk_loops",
         [&](const Graph& from) { return chunk_loops(from, passes_.chunk_steps); });
    // Splits the loops inside chunks, which a memory policy left whole before.
    pass(chunks_ && passes_.split_loops, "split_loops", split_loops);
    // Computes slices of chunked loops inside them, chunk by chunk.
    pass(chunks_, "feed_chunks", feed_chunks);
  }

  void batch() {
    // Hoists or sinks ops, to run once for all iterations.
    pass(batches_, "batch_across_iterations",
         [&](const Graph& from) { return batch_across_iterations(from, packs_); });
    // Replaces the slices that became equal in every iteration, as ops on captures have left loops.
    pass(true, "capture_constant_slices", capture_constant_slices);
    // Drops masks of values that are masked already.
    pass(passes_.simplify, "drop_masks", drop_masks);
  }

  void fuse() {
    // Packs matrices that loops capture, for products.
    pass(passes_.pack_weights, "pack_weights",
         [&](const Graph& from) { return pack_weights(from, packs_); });
    // Makes products of few terms element-wise ops.
    pass(passes_.fuse_pointwise, "unfold_products", unfold_products);
    // Computes large values of small operands again for later readers.
    pass(passes_.fuse_pointwise, "recompute_broadcasts", recompute_broadcasts);
    // Scatters numbers into a difference instead of zeros.
    pass(passes_.fuse_pointwise, "scatter_last", scatter_last);
    // Fuses element-wise ops into ops that run tile by tile.
    pass(passes_.fuse_pointwise, "fuse_pointwise", fuse_pointwise);
  }

  void reorder() {
    // Moves chunked loops that can be pipelined next to each other.
    pass(chunks_ && passes_.adjoin_loops, "group_pipelined_loops", group_pipelined_loops);
    // Moves updates of arguments behind the reads of these, so that they can be made in place.
    pass(true, "sink_updates", sink_updates);
  }

  const Passes& passes_;
  const Packs packs_;
  const bool batches_, chunks_;
  GraphDump dump_;
  Ref<Graph> graph_;
};

}  // namespace

Optimised optimise_for_plan(const Graph& graph, const Passes& passes) {
  return PlanPipeline(graph, passes).run();
}

}  // namespace reel
