// The writer of cond.
#include "reel/core/ops/control/cond.h"
#include "reel/onnx/borders.h"
#include "reel/onnx/writer_registry.h"
#include "reel/onnx/writers/loop_writer.h"
#include "reel/onnx/writers/recurrent_writer.h"

namespace reel::exported {
namespace {

/// A branch of a cond, and the captures of the op that it takes.
struct Branch {
  const SubGraph& sub;
  const std::vector<int>& captures;

  ValueId capture(const WriteCall& call, std::size_t i) const {
    return call.value_in(1 + static_cast<std::size_t>(captures[i]));
  }
  /// Returns the dims around the cond for the branch's symbols.
  DimEnv env(const WriteCall& call) const {
    DimEnv env = sub.env();
    for (std::size_t i = 0; i < captures.size(); ++i)
      env.bind(sub.graph->types[sub.graph->inputs[i]], call.to.type(capture(call, i)));
    return env;
  }
  /// Writes the records.
  void write(const WriteCall& call, GraphWriter& writer) const {
    for (std::size_t i = 0; i < captures.size(); ++i)
      writer.set(sub.graph->inputs[i], call.to.name_or_none(capture(call, i)));
    writer.write_records();
  }
};

std::shared_ptr<const imported::Graph> graph_of(const WriteCall& call, const Branch& branch,
                                                const char* name) {
  GraphWriter& to = call.to;
  const Graph& graph = *branch.sub.graph;
  InnerGraph inner(to.model(), name);
  GraphWriter writer(to.model(), inner.nodes(), graph, &to, branch.env(call));
  branch.write(call, writer);
  for (std::size_t i = 0; i < graph.outputs.size(); ++i)
    inner.add_output(writer, leaving(writer, graph.outputs[i]), leaving_type(call.type_out(i)));
  return inner.graph();
}

/// Returns the results of the only branch that runs. Adds its nodes to the graph around.
Names inlined(const WriteCall& call, const Branch& branch) {
  GraphWriter& to = call.to;
  const Graph& graph = *branch.sub.graph;
  GraphWriter writer(to.model(), to.nodes(), graph, &to, branch.env(call));
  branch.write(call, writer);
  Names names;
  for (const ValueId output : graph.outputs) names.push_back(leaving(writer, output));
  return names;
}

Names write_cond(const WriteCall& call) {
  if (!call.count_out()) return {};  // an If has an output
  const CondAttrs& attrs = call.attr<CondAttrs>();
  const Branch on_true{attrs.on_true, attrs.true_captures},
      on_false{attrs.on_false, attrs.false_captures};
  // onnxruntime loses values of branches in branches if it inlines an If itself.
  const std::optional<bool> known = call.to.model().known_boolean(call.in(0));
  const Names names = known
                          ? inlined(call, *known ? on_true : on_false)
                          : call.to.add("If", {call.in(0)}, call.count_out(),
                                        {{"then_branch", graph(graph_of(call, on_true, "then"))},
                                         {"else_branch", graph(graph_of(call, on_false, "else"))}});
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
