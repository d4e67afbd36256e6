// The writer of cond.
#include "reel/core/ops/control/cond.h"
#include "reel/onnx/borders.h"
#include "reel/onnx/writer_registry.h"
#include "reel/onnx/writers/loop_writer.h"
#include "reel/onnx/writers/recurrent_writer.h"

namespace reel::exported {
namespace {

/// Writes a branch. captures: indices of the op's captures that the branch takes.
std::shared_ptr<const imported::Graph> branch_of(const WriteCall& call, const SubGraph& sub,
                                                 const std::vector<int>& captures,
                                                 const char* name) {
  GraphWriter& to = call.to;
  const Graph& graph = *sub.graph;
  DimEnv env = sub.env();
  for (std::size_t i = 0; i < graph.inputs.size(); ++i)
    env.bind(graph.types[graph.inputs[i]], call.type_in(1 + static_cast<std::size_t>(captures[i])));
  InnerGraph inner(to.model(), name);
  GraphWriter branch(to.model(), inner.nodes(), graph, &to, std::move(env));
  for (std::size_t i = 0; i < graph.inputs.size(); ++i)
    branch.set(graph.inputs[i],
               to.name_or_none(call.value_in(1 + static_cast<std::size_t>(captures[i]))));
  branch.write_records();
  for (std::size_t i = 0; i < graph.outputs.size(); ++i)
    inner.add_output(branch, leaving(branch, graph.outputs[i]), leaving_type(call.type_out(i)));
  return inner.graph();
}

Names write_cond(const WriteCall& call) {
  if (!call.count_out()) return {};  // an If has an output
  const CondAttrs& attrs = call.attr<CondAttrs>();
  const auto on_true = branch_of(call, attrs.on_true, attrs.true_captures, "then");
  const auto on_false = branch_of(call, attrs.on_false, attrs.false_captures, "else");
  const Names names =
      call.to.add("If", {call.in(0)}, call.count_out(),
                  {{"then_branch", graph(on_true)}, {"else_branch", graph(on_false)}});
  Names results;
  for (std::size_t i = 0; i < call.count_out(); ++i) {
    const TensorType& type = call.type_out(i);
    if (is_token(type) && !type.is_list()) {
      call.to.set_lengths(type.dims()[1], names[i]);
      results.emplace_back();
    } else {
      results.push_back(names[i]);
    }
  }
  return results;
}

Names write_any_loop(const WriteCall& call) {
  if (const auto names = write_recurrent(call)) return *names;
  return write_loop(call);
}

const Writer kWriters[] = {{"cond", write_cond}, {"loop", write_any_loop}};

}  // namespace

std::span<const Writer> control_writers() { return kWriters; }

}  // namespace reel::exported
