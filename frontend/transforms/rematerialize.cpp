#include "reel/frontend/transforms/rematerialize.h"

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/graph/graph_builder.h"
#include "reel/core/op/bind.h"
#include "reel/core/ops/control/checkpointed.h"
#include "reel/core/ops/control/identity.h"
#include "reel/frontend/loops/loop_recording.h"
#include "reel/frontend/loops/trace_subcomputation.h"

namespace reel::detail {
namespace {

/// Returns the values of a graph that the rule saves.
std::vector<ValueId> kept_values(const Graph& graph, const SavingRule& rule) {
  std::vector<ValueId> result;
  for (const OpRecord& record : graph.records)
    for (const ValueId v : graph.outputs_of(record)) {
      const Saving saving = rule({record.op->name, checkpoint_name_of(record), graph.types[v]});
      if (saving == Saving::keep || saving == Saving::spill) result.push_back(v);
    }
  return result;
}

/// Records the function as one op of the trace.
TreeLeaves record(const TreeLeaves& arguments, const SavingRule& rule,
                  const std::function<TreeLeaves(const TreeLeaves&)>& function) {
  Tensors captured, outputs;
  Ref<Graph> graph;
  TreeLeaves result;
  {
    GraphBuilder builder("checkpointed", "checkpoint(f)");
    ModeScope scope(builder.scope());
    result = function(arguments);
    outputs = outputs_of(result);
    graph = finish_part(builder, outputs);
    captured = builder.captured();
  }
  std::vector<ValueId> kept;
  if (rule) kept = kept_values(*graph, rule);
  graph->outputs.insert(graph->outputs.end(), kept.begin(), kept.end());
  graph->seal();
  Tensors made = bind_all(checkpointed_op, captured,
                          make_attrs(CheckpointedAttrs{make_sub_graph(graph), std::ssize(kept)}));
  made.resize(outputs.size());
  return with_outputs(result, made);
}

}  // namespace

SavingRule only_rule_of(const Checkpoint& policy) {
  if (policy.steps() || policy.bytes())
    throw ArgumentError(
        str("checkpoint: Checkpoint::",
            policy.steps() ? str("every(", policy.steps()) : str("budget(", policy.bytes()),
            ") is for loops, and a function runs once; give Checkpoint().where(rule), or leave the "
            "policy out to save only the arguments"));
  return policy.rule() ? *policy.rule() : SavingRule();
}

TreeLeaves run_checkpointed(TreeLeaves arguments, const SavingRule& rule,
                            const std::function<TreeLeaves(const TreeLeaves&)>& function) {
  if (is_tracing()) return record(arguments, rule, function);
  if (!is_recorded_here()) return function(arguments);
  // Arguments are captured, like other tensors that the function reads. A tensor that is both an
  // argument and captured is then one input, as in a trace, and its cotangents are summed in one
  // order.
  return run_recorded("checkpoint", {},
                      [&](const TreeLeaves&) { return record(arguments, rule, function); });
}

}  // namespace reel::detail
