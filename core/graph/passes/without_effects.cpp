#include "reel/core/graph/passes/without_effects.h"

#include "reel/core/graph/graph_rewriter.h"
#include "reel/core/ops/control/checkpointed.h"
#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/control/effects.h"
#include "reel/core/ops/loop/loop.h"

namespace reel {
namespace {

AttrsRef parts_without_effects(const OpRecord& record) {
  const auto inside = [](SubGraph& part) {
    if (!part) return;
    DimEnv names = part.env();
    part = make_sub_graph(without_effects(*part.graph), names);
  };
  if (record.op == &loop_op) {
    LoopAttrs attrs = get<LoopAttrs>(record.attrs.get());
    inside(attrs.body);
    inside(attrs.cond);
    return make_attrs(std::move(attrs));
  }
  if (record.op == &checkpointed_op) {
    CheckpointedAttrs attrs = get<CheckpointedAttrs>(record.attrs.get());
    inside(attrs.body);
    return make_attrs(std::move(attrs));
  }
  CondAttrs attrs = get<CondAttrs>(record.attrs.get());
  inside(attrs.on_true);
  inside(attrs.on_false);
  return make_attrs(std::move(attrs));
}

}  // namespace

Ref<Graph> without_effects(const Graph& graph) {
  GraphRewriter to(graph);
  for (const OpRecord& record : graph.records) {
    if (record.op->has_effect && !is_collective(*record.op)) {
      const ValueId x = to[graph.inputs_of(record)[0]];
      for (const ValueId v : graph.outputs_of(record)) to.replace(v, x);
      continue;
    }
    const bool has_parts =
        record.op == &loop_op || record.op == &cond_op || record.op == &checkpointed_op;
    to.keep(record,
            has_parts && has_effects(record) ? parts_without_effects(record) : record.attrs);
  }
  return to.finish();
}

}  // namespace reel
