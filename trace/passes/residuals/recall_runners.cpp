#include "reel/trace/passes/residuals/recall_runners.h"

#include <algorithm>

#include "reel/core/ops/control/recall.h"
#include "reel/trace/executors/checkpoints/segments.h"

namespace reel {

bool has_recalls(const Graph& graph) {
  return std::any_of(graph.records.begin(), graph.records.end(), [](const OpRecord& record) {
    if (record.op == &recall_op) return true;
    if (record.op == &loop_op) return has_recalls(*get<LoopAttrs>(record.attrs.get()).body.graph);
    if (record.op != &cond_op) return false;
    const auto& attrs = get<CondAttrs>(record.attrs.get());
    return has_recalls(*attrs.on_true.graph) || has_recalls(*attrs.on_false.graph);
  });
}

namespace {

Ref<Graph> recall_by(const Graph& graph, const GraphRunner& runner, const DimRenames& renames) {
  Ref<Graph> result(new Graph(graph));
  result->records.clear();
  result->operands.clear();
  const auto inside = [&](SubGraph& part) {
    if (!has_recalls(*part.graph)) return;
    DimEnv names = part.env();
    part = make_sub_graph(recall_by(*part.graph, runner, renames), names);
  };
  for (const OpRecord& record : graph.records) {
    AttrsRef attrs = record.attrs;
    if (record.op == &recall_op) {
      RecallAttrs recall = get<RecallAttrs>(attrs.get());
      recall.runner = runner;
      recall.graphs =
          std::make_shared<SegmentGraphs>(recall, graph.types_of(graph.inputs_of(record)), renames);
      recall.dims = recall.graphs->symbols();
      attrs = make_attrs(std::move(recall));
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
    result->append(record, attrs, graph.inputs_of(record), graph.outputs_of(record));
  }
  result->seal();
  return result;
}

}  // namespace

Ref<Graph> recall_by(const Graph& graph, const GraphRunner& runner) {
  return recall_by(graph, runner, graph.renames);
}

}  // namespace reel
