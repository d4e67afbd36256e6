#include "reel/frontend/checkpointed.h"

#include "reel/core/bind.h"
#include "reel/core/graph_builder.h"
#include "reel/core/ops/checkpointed.h"
#include "reel/core/random.h"
#include "reel/frontend/loop_recording.h"
#include "reel/frontend/recorded_part.h"

namespace reel::detail {
namespace {

/// One record of the trace.
TreeLeaves record(const TreeLeaves& arguments,
                  const std::function<TreeLeaves(const TreeLeaves&)>& function) {
  Tensors captured, outputs;
  Ref<Graph> graph;
  TreeLeaves result;
  {
    RandomScope random;
    random.begin(0);
    GraphBuilder builder("checkpointed");
    ModeScope scope(builder.scope());
    result = function(arguments);
    outputs = tensors_of(result);
    graph = finish_part(builder, outputs);
    captured = builder.captured();
  }
  const Tensors made =
      bind_all(checkpointed_op, captured, make_attrs(CheckpointedAttrs{make_sub_graph(graph)}));
  return with_tensors(result, made);
}

}  // namespace

TreeLeaves run_checkpointed(TreeLeaves arguments,
                            const std::function<TreeLeaves(const TreeLeaves&)>& function) {
  if (is_tracing()) return record(arguments, function);
  if (!is_recorded_here()) {
    RandomScope random;
    random.begin(0);
    return function(arguments);
  }
  return run_recorded("checkpoint", std::move(arguments),
                      [&](const TreeLeaves& inside) { return record(inside, function); });
}

}  // namespace reel::detail
