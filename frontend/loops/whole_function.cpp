#include "reel/frontend/loops/whole_function.h"

#include <utility>

#include "reel/core/graph/graph_builder.h"
#include "reel/core/op/bind.h"
#include "reel/core/ops/control/checkpointed.h"
#include "reel/core/types/mode.h"
#include "reel/frontend/loops/loop_recording.h"

namespace reel {
namespace {

constinit thread_local bool are_whole = false;

/// Returns the positions of tensors among captures; -1 for empty ones.
std::vector<std::int64_t> positions_in(const Tensors& captured, const Tensors& tensors) {
  std::vector<std::int64_t> result;
  for (const Tensor& x : tensors) {
    std::int64_t at = -1;
    for (std::size_t i = 0; x.is_defined() && at < 0 && i < captured.size(); ++i)
      if (captured[i].block()->id == x.block()->id) at = static_cast<std::int64_t>(i);
    result.push_back(at);
  }
  return result;
}

}  // namespace

WholeFunctions::WholeFunctions() : before_(std::exchange(are_whole, true)) {}
WholeFunctions::~WholeFunctions() { are_whole = before_; }
bool WholeFunctions::are_recorded() { return are_whole && is_tracing() && !thread_mode.tape; }

Tensors whole_function(const WholeFunction& call, const std::function<Tensors()>& run) {
  Tensors captured;
  Ref<Graph> graph;
  {
    GraphBuilder builder("checkpointed", call.name);
    ModeScope scope(builder.scope());
    graph = finish_part(builder, run());
    captured = builder.captured();
  }
  graph->seal();
  CheckpointedAttrs attrs{.body = make_sub_graph(graph)};
  attrs.label = {call.name, positions_in(captured, call.operands), call.dims, call.numbers};
  return bind_all(checkpointed_op, captured, make_attrs(std::move(attrs)));
}

}  // namespace reel
