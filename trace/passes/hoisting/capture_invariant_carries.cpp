#include "reel/trace/passes/hoisting/capture_invariant_carries.h"

#include "reel/core/ops/loop/loop.h"
#include "reel/trace/passes/support/loop_leaves.h"

namespace reel {
namespace {

/// A loop record.
struct Loop {
  LoopAttrs attrs;
  std::vector<ValueId> inputs, outputs;
};

/// Turns carries that the body returns unchanged into captures. Returns the outputs that the record
/// loses, and the inputs that they equal.
///
/// types: of the graph around. An output with a dim of its own, of unknown size, stays: other
/// records may mention that dim.
std::vector<std::pair<ValueId, ValueId>> capture_carries(Loop& loop,
                                                         const std::vector<TensorType>& types) {
  LoopAttrs& attrs = loop.attrs;
  Ref<Graph> body(new Graph(*attrs.body.graph));
  Ref<Graph> cond(attrs.cond ? new Graph(*attrs.cond.graph) : nullptr);
  std::vector<std::pair<ValueId, ValueId>> same;
  for (std::size_t i = 0; i < attrs.carries.size();) {
    const auto formals = body_inputs_of(attrs, body->inputs).carries;
    const auto returned = body_outputs_of(attrs, body->outputs).carries;
    const ValueId before = operands_of(attrs, loop.inputs).carries[i],
                  after = results_of(attrs, loop.outputs).carries[i];
    // Finished entries keep their value, which is the one that the body returns, so lengths make no
    // difference.
    const bool is_unchanged = returned[i] == formals[i] && types[before] == types[after] &&
                              attrs.carries[i].fill == FinishedFill::running &&
                              !attrs.carries[i].adds_finished;
    if (!is_unchanged) {
      ++i;
      continue;
    }
    const ValueId initial = take(loop.inputs, operands_of(attrs, loop.inputs).carries[i]);
    const ValueId formal = take(body->inputs, formals[i]);
    same.emplace_back(take(loop.outputs, results_of(attrs, loop.outputs).carries[i]), initial);
    take(body->outputs, returned[i]);
    --body->formal_count;
    if (cond) {
      cond->inputs.push_back(take(cond->inputs, cond_inputs_of(attrs, cond->inputs).carries[i]));
      --cond->formal_count;
      attrs.cond_captures.push_back(static_cast<int>(attrs.captures.size()));
    }
    attrs.carries.erase(attrs.carries.begin() + static_cast<std::ptrdiff_t>(i));
    add_body_capture(attrs, loop.inputs, initial, *body, formal);
  }
  body->seal();
  DimEnv names = attrs.body.env();
  attrs.body = make_sub_graph(std::move(body), names);
  if (cond) {
    cond->seal();
    DimEnv env = attrs.cond.env();
    attrs.cond = make_sub_graph(std::move(cond), env);
  }
  return same;
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
    const auto out = graph.outputs_of(record);
    Loop loop{get<LoopAttrs>(record.attrs.get()), std::move(in), {out.begin(), out.end()}};
    DimEnv names = loop.attrs.body.env();
    loop.attrs.body = make_sub_graph(capture_invariant_carries(*loop.attrs.body.graph), names);
    for (const auto& [output, input] : capture_carries(loop, graph.types)) value[output] = input;
    result->append(record, make_attrs(std::move(loop.attrs)), loop.inputs, loop.outputs);
  }
  for (const ValueId v : graph.outputs) result->outputs.push_back(value[v]);
  result->seal();
  return result;
}

}  // namespace reel
