#include "reel/trace/passes/residuals/recompute_runners.h"

#include <algorithm>

#include "reel/core/graph/graph_rewriter.h"
#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/control/recompute.h"
#include "reel/trace/passes/residuals/replay_segment_graphs.h"

namespace reel {

bool has_recomputes(const Graph& graph) {
  return std::any_of(graph.records.begin(), graph.records.end(), [](const OpRecord& record) {
    if (record.op == &recompute_op) return true;
    if (record.op == &loop_op)
      return has_recomputes(*get<LoopAttrs>(record.attrs.get()).body.graph);
    if (record.op != &cond_op) return false;
    const auto& attrs = get<CondAttrs>(record.attrs.get());
    return has_recomputes(*attrs.on_true.graph) || has_recomputes(*attrs.on_false.graph);
  });
}

namespace {

Ref<Graph> recompute_by(const Graph& graph, const GraphRunner& runner, const DimChanges& renames) {
  GraphRewriter to(graph);
  const auto inside = [&](SubGraph& part) {
    if (!has_recomputes(*part.graph)) return;
    DimEnv names = part.env();
    part = make_sub_graph(recompute_by(*part.graph, runner, renames), names);
  };
  for (const OpRecord& record : graph.records) {
    AttrsRef attrs = record.attrs;
    if (record.op == &recompute_op) {
      RecomputeAttrs recomputation = get<RecomputeAttrs>(attrs.get());
      recomputation.runner = runner;
      recomputation.graphs = std::make_shared<ReplaySegmentGraphs>(
          recomputation, graph.types_of(graph.inputs_of(record)), renames);
      recomputation.dims = recomputation.graphs->symbols();
      attrs = make_attrs(std::move(recomputation));
    } else if (record.op == &loop_op) {
      LoopAttrs loop = get<LoopAttrs>(attrs.get());
      inside(loop.body);
      attrs = make_attrs(std::move(loop));
    } else if (record.op == &cond_op) {
      CondAttrs cond = get<CondAttrs>(attrs.get());
      inside(cond.on_true);
      inside(cond.on_false);
      attrs = make_attrs(std::move(cond));
    }
    to.keep(record, attrs);
  }
  return to.finish();
}

}  // namespace

Ref<Graph> recompute_by(const Graph& graph, const GraphRunner& runner) {
  return recompute_by(graph, runner, graph.renames);
}

}  // namespace reel
