#include "reel/trace/passes/hoisting/capture_invariant_carries.h"

#include "reel/core/ops/control/loop.h"

namespace reel {
namespace {

/// A loop whose unchanged carries are captures, with the inputs and outputs of its record.
struct Lifted {
  LoopAttrs attrs;
  std::vector<ValueId> inputs, outputs;
  std::vector<std::pair<ValueId, ValueId>> same;  // outputs, and inputs that they equal
};

Lifted lift(const LoopAttrs& attrs, std::span<const ValueId> in, std::span<const ValueId> out) {
  const Graph& body = *attrs.body.graph;
  Lifted result{attrs, {in.begin(), in.begin() + attrs.first_carry()}, {}, {}};
  LoopAttrs& next = result.attrs;
  Ref<Graph> graph(new Graph(body));
  Ref<Graph> asks;
  graph->inputs = {body.inputs[0]};
  graph->outputs.clear();
  std::vector<ValueId> cond_inputs, cond_new, body_new, op_new;
  std::vector<Fill> fills, new_fills;
  next.adds_finished_to_running.clear();
  next.last_dims.clear();
  if (attrs.cond) cond_inputs.push_back(attrs.cond.graph->inputs[0]);
  for (int i = 0; i < attrs.carries; ++i) {
    // Finished entries keep their value, which is the one that the body returns, so lengths make no
    // difference.
    const bool is_unchanged = body.outputs[i] == body.inputs[1 + i] &&
                              attrs.fills[i] == Fill::live && !attrs.output_adds_finished(i);
    if (is_unchanged) {
      --next.carries;
      op_new.push_back(in[attrs.first_carry() + i]);
      body_new.push_back(body.inputs[1 + i]);
      if (attrs.cond) cond_new.push_back(attrs.cond.graph->inputs[1 + i]);
      new_fills.push_back(attrs.fills[i]);
      result.same.emplace_back(out[i], in[attrs.first_carry() + i]);
      continue;
    }
    graph->inputs.push_back(body.inputs[1 + i]);
    graph->outputs.push_back(body.outputs[i]);
    next.adds_finished_to_running.push_back(attrs.output_adds_finished(i));
    if (!attrs.last_dims.empty()) next.last_dims.push_back(attrs.last_dims[i]);
    if (attrs.cond) cond_inputs.push_back(attrs.cond.graph->inputs[1 + i]);
    fills.push_back(attrs.fills[i]);
    result.inputs.push_back(in[attrs.first_carry() + i]);
    result.outputs.push_back(out[i]);
  }
  for (int i = 0; i < attrs.slices; ++i)
    graph->inputs.push_back(body.inputs[1 + attrs.carries + i]);
  graph->outputs.insert(graph->outputs.end(), body.outputs.begin() + attrs.carries,
                        body.outputs.end());
  for (std::size_t i = attrs.carries; i < body.outputs.size(); ++i)
    next.adds_finished_to_running.push_back(attrs.output_adds_finished(i));
  graph->formal_count = graph->inputs.size();
  graph->inputs.insert(graph->inputs.end(), body.inputs.begin() + body.formal_count,
                       body.inputs.end());
  graph->inputs.insert(graph->inputs.end(), body_new.begin(), body_new.end());
  graph->seal();
  result.inputs.insert(result.inputs.end(), in.begin() + attrs.first_slice(), in.end());
  const int captures = static_cast<int>(in.size() - attrs.first_capture());
  result.inputs.insert(result.inputs.end(), op_new.begin(), op_new.end());
  result.outputs.insert(result.outputs.end(), out.begin() + attrs.carries, out.end());
  fills.insert(fills.end(), attrs.fills.begin() + attrs.carries, attrs.fills.end());
  fills.insert(fills.end(), new_fills.begin(), new_fills.end());
  next.fills = std::move(fills);
  for (std::size_t i = 0; i < op_new.size(); ++i)
    next.body_captures.push_back(captures + static_cast<int>(i));
  DimEnv names = attrs.body.env();
  next.body = make_sub_graph(graph, names);
  if (attrs.cond) {
    const Graph& cond = *attrs.cond.graph;
    asks = Ref<Graph>(new Graph(cond));
    asks->inputs = cond_inputs;
    asks->formal_count = cond_inputs.size();
    asks->inputs.insert(asks->inputs.end(), cond.inputs.begin() + cond.formal_count,
                        cond.inputs.end());
    asks->inputs.insert(asks->inputs.end(), cond_new.begin(), cond_new.end());
    asks->seal();
    for (std::size_t i = 0; i < op_new.size(); ++i)
      next.cond_captures.push_back(captures + static_cast<int>(i));
    DimEnv env = attrs.cond.env();
    next.cond = make_sub_graph(asks, env);
  }
  return result;
}

}  // namespace

Ref<Graph> capture_invariant_carries(const Graph& graph) {
  Ref<Graph> result(new Graph);
  result->name = graph.name;
  result->types = graph.types;
  result->inputs = graph.inputs;
  result->formal_count = graph.formal_count;
  std::vector<ValueId> value(graph.types.size());
  for (ValueId v = 0; v < value.size(); ++v) value[v] = v;
  for (const OpRecord& record : graph.records) {
    std::vector<ValueId> in;
    for (const ValueId v : graph.inputs_of(record)) in.push_back(value[v]);
    if (record.op != &loop_op) {
      result->append(record, record.attrs, in, graph.outputs_of(record));
      continue;
    }
    LoopAttrs attrs = get<LoopAttrs>(record.attrs.get());
    DimEnv names = attrs.body.env();
    attrs.body = make_sub_graph(capture_invariant_carries(*attrs.body.graph), names);
    Lifted lifted = lift(attrs, in, graph.outputs_of(record));
    for (const auto& [output, input] : lifted.same) value[output] = input;
    result->append(record, make_attrs(std::move(lifted.attrs)), lifted.inputs, lifted.outputs);
  }
  for (const ValueId v : graph.outputs) result->outputs.push_back(value[v]);
  result->seal();
  return result;
}

}  // namespace reel
