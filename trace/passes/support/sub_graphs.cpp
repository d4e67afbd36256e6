#include "reel/trace/passes/support/sub_graphs.h"

#include "reel/core/graph/graph_rewriter.h"
#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/control/effects.h"

namespace reel {

namespace {

/// Changes the body and condition of a loop, or the branches of a cond.
AttrsRef with_changed(const OpRecord& record, const std::function<void(SubGraph&)>& change) {
  if (record.op == &loop_op) {
    LoopAttrs attrs = get<LoopAttrs>(record.attrs.get());
    if (!attrs.debug.origin) attrs.debug.origin = attrs.body.graph;
    change(attrs.body);
    if (attrs.cond) change(attrs.cond);
    return make_attrs(std::move(attrs));
  }
  if (record.op == &cond_op) {
    CondAttrs attrs = get<CondAttrs>(record.attrs.get());
    change(attrs.on_true);
    change(attrs.on_false);
    return make_attrs(std::move(attrs));
  }
  return record.attrs;
}

}  // namespace

AttrsRef with_all_sub_graphs(const OpRecord& record, const Pass& pass) {
  return with_changed(record, [&](SubGraph& part) {
    DimEnv names = part.env();
    part = make_sub_graph(pass(*part.graph), names);
  });
}

AttrsRef with_sub_graphs(const OpRecord& record, const Pass& pass) {
  return with_changed(record, [&](SubGraph& part) {
    if (!has_loops(*part.graph)) return;
    DimEnv names = part.env();
    part = make_sub_graph(pass(*part.graph), names);
  });
}

Ref<Graph> with_loops(const Graph& graph, const Pass& pass, const LoopChange& change) {
  GraphRewriter to(graph);
  for (const OpRecord& record : graph.records) {
    std::vector<ValueId> inputs = to.inputs_of(record);
    AttrsRef attrs = with_sub_graphs(record, pass);
    if (record.op == &loop_op) {
      LoopAttrs loop = get<LoopAttrs>(attrs.get());
      change(record, loop, inputs);
      attrs = make_attrs(std::move(loop));
    }
    to.keep(record, attrs, inputs);
  }
  return to.finish();
}

}  // namespace reel
