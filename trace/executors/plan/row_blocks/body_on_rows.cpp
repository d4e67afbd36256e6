#include "reel/trace/executors/plan/row_blocks/body_on_rows.h"

#include "reel/core/op/bind.h"
#include "reel/core/ops/creation/draws.h"
#include "reel/core/ops/shape/lengths_read.h"
#include "reel/core/ops/shape/shape.h"
#include "reel/core/types/tensor.h"
#include "reel/trace/passes/analysis/row_rules.h"

namespace reel {

BodyOnRows body_on_rows(const Graph& body, std::span<const int> axes) {
  Ref<Graph> graph(new Graph(body));
  graph->records.clear();
  graph->operands.clear();
  ValueId numbers = 0;
  BodyOnRows result;
  bool changes = false;
  for (const OpRecord& record : body.records) {
    const InheritProvenance scope(record);
    const auto in = body.inputs_of(record), out = body.outputs_of(record);
    const int axis = out.empty() ? -1 : axes[out[0]];
    if (axis >= 0 && is_draw(*record.op)) {
      if (!result.takes_numbers) numbers = graph->add_value(TensorType(i64, {Dim::unknown()}));
      result.takes_numbers = changes = true;
      const ValueId inputs[] = {in[0], numbers};
      graph->append(draw_rows_op, make_attrs(draw_rows_attrs(record, axis)), inputs, out);
      continue;
    }
    if (axis >= 0 && dim_read_by(*record.op, record.attrs.get())) {
      changes = true;
      graph->inputs.push_back(out[0]);
      result.lengths_of.push_back(record);
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
  if (result.takes_numbers) graph->inputs.push_back(numbers);
  graph->seal();
  result.graph = std::move(graph);
  return result;
}

std::vector<TensorType> BodyOnRows::length_types(DimEnv env) const {
  std::vector<TensorType> result;
  for (const OpRecord& record : lengths_of) {
    const AttrsRef attrs = record.attrs->resolve(env);
    TypeList types;
    TypeArgs rule{*record.op, attrs.get(), {}, types};
    apply_type_rule(rule);
    result.push_back(types.span()[0]);
  }
  return result;
}

Tensors BodyOnRows::lengths(DimEnv env) const {
  Tensors result;
  for (const OpRecord& record : lengths_of)
    result.push_back(bind(*record.op, OpInputs(), record.attrs->resolve(env)));
  return result;
}

LoopAttrs on_body(const LoopAttrs& attrs, const BodyOnRows& body) {
  LoopAttrs result = attrs;
  if (!body.graph) return result;
  DimEnv names = attrs.body.env();
  result.body = make_sub_graph(body.graph, names);
  for (std::size_t added = body.lengths_of.size() + body.takes_numbers; added > 0; --added) {
    result.body_captures.push_back(static_cast<int>(result.captures.size()));
    result.captures.emplace_back();
  }
  return result;
}

}  // namespace reel
