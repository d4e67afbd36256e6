#include "reel/trace/passes/support/sub_graphs.h"

#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/control/effects.h"

namespace reel {

AttrsRef with_sub_graphs(const OpRecord& record, const Pass& pass) {
  const auto inside = [&](const SubGraph& sub) {
    if (!has_loops(*sub.graph)) return sub;
    DimEnv names = sub.env();
    return make_sub_graph(pass(*sub.graph), names);
  };
  if (record.op == &loop_op) {
    LoopAttrs attrs = get<LoopAttrs>(record.attrs.get());
    if (!attrs.debug.origin) attrs.debug.origin = attrs.body.graph;
    attrs.body = inside(attrs.body);
    return make_attrs(std::move(attrs));
  }
  if (record.op == &cond_op) {
    CondAttrs attrs = get<CondAttrs>(record.attrs.get());
    attrs.on_true = inside(attrs.on_true);
    attrs.on_false = inside(attrs.on_false);
    return make_attrs(std::move(attrs));
  }
  return record.attrs;
}

Ref<Graph> with_loops(const Graph& graph, const Pass& pass, const LoopChange& change) {
  Ref<Graph> result(new Graph(graph));
  result->records.clear();
  result->operands.clear();
  for (const OpRecord& record : graph.records) {
    const auto given = graph.inputs_of(record);
    std::vector<ValueId> inputs(given.begin(), given.end());
    AttrsRef attrs = with_sub_graphs(record, pass);
    if (record.op == &loop_op) {
      LoopAttrs loop = get<LoopAttrs>(attrs.get());
      change(record, loop, inputs);
      attrs = make_attrs(std::move(loop));
    }
    result->append(record, attrs, inputs, graph.outputs_of(record));
  }
  result->seal();
  return result;
}

}  // namespace reel
