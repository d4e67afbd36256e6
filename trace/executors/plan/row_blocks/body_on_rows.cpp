#include "reel/trace/executors/plan/row_blocks/body_on_rows.h"

#include "reel/core/ops/creation/draws.h"
#include "reel/core/ops/shape/shape.h"
#include "reel/trace/passes/analysis/row_rules.h"

namespace reel {

BodyOnRows body_on_rows(const Graph& body, std::span<const int> axes) {
  Ref<Graph> graph(new Graph(body));
  graph->records.clear();
  graph->operands.clear();
  ValueId numbers = 0;
  bool takes_numbers = false, changes = false;
  for (const OpRecord& record : body.records) {
    const InheritProvenance scope(record);
    const auto in = body.inputs_of(record), out = body.outputs_of(record);
    const int axis = out.empty() ? -1 : axes[out[0]];
    if (axis >= 0 && is_draw(*record.op)) {
      if (!takes_numbers) numbers = graph->add_value(TensorType(i64, {Dim::unknown()}));
      takes_numbers = changes = true;
      const ValueId inputs[] = {in[0], numbers};
      graph->append(draw_rows_op, make_attrs(draw_rows_attrs(record, axis)), inputs, out);
      continue;
    }
    AttrsRef attrs = record.attrs;
    if (axis >= 0 && record.op == &reshape_op && !body.types[out[0]].is_named()) {
      attrs = with_open_axis(body.types[out[0]], axis);
      changes = true;
    }
    graph->append(record, std::move(attrs), in, out);
  }
  if (!changes) return {};
  if (takes_numbers) graph->inputs.push_back(numbers);
  graph->seal();
  return {std::move(graph), takes_numbers};
}

LoopAttrs on_body(const LoopAttrs& attrs, const BodyOnRows& body) {
  LoopAttrs result = attrs;
  if (!body.graph) return result;
  DimEnv names = attrs.body.env();
  result.body = make_sub_graph(body.graph, names);
  if (!body.takes_numbers) return result;
  result.body_captures.push_back(static_cast<int>(attrs.captures.size()));
  result.captures.emplace_back();
  return result;
}

}  // namespace reel
