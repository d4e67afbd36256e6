#include "reel/trace/passes/hoisting/capture_invariant_carries.h"

#include "reel/core/graph/graph_rewriter.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/trace/passes/support/loop_leaves.h"
#include "reel/trace/passes/support/sub_graphs.h"

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
  GraphRewriter to(graph);
  for (const OpRecord& record : graph.records) {
    const AttrsRef attrs = with_sub_graphs(record, capture_invariant_carries);
    if (record.op != &loop_op) {
      to.keep(record, attrs);
      continue;
    }
    const auto out = graph.outputs_of(record);
    Loop loop{get<LoopAttrs>(attrs.get()), to.inputs_of(record), {out.begin(), out.end()}};
    for (const auto& [output, input] : capture_carries(loop, graph.types))
      to.replace(output, input);
    to.keep(record, make_attrs(std::move(loop.attrs)), loop.inputs, loop.outputs);
  }
  return to.finish();
}

}  // namespace reel
