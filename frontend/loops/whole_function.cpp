#include "reel/frontend/loops/whole_function.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "reel/core/graph/graph_builder.h"
#include "reel/core/op/bind.h"
#include "reel/core/ops/control/checkpointed.h"
#include "reel/core/types/mode.h"
#include "reel/frontend/loops/loop_recording.h"

namespace reel {
namespace {

constinit thread_local bool are_whole = false;

/// Returns the positions of tensors among captures, -1 for empty ones; nothing if one is missing.
std::optional<std::vector<std::int64_t>> positions_in(const Tensors& captured,
                                                      const Tensors& tensors) {
  std::vector<std::int64_t> result;
  for (const Tensor& x : tensors) {
    const auto is_same = [&](const Tensor& of) { return of.block()->id == x.block()->id; };
    if (!x.is_defined()) {
      result.push_back(-1);
    } else if (const auto at = std::find_if(captured.begin(), captured.end(), is_same);
               at != captured.end()) {
      result.push_back(at - captured.begin());
    } else {
      return std::nullopt;
    }
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
  // Without a label, formats write the ops. A node without an operand would compute other values.
  if (auto operands = positions_in(captured, call.operands))
    attrs.label = {call.name, std::move(*operands), call.dims, call.numbers};
  return bind_all(checkpointed_op, captured, make_attrs(std::move(attrs)));
}

}  // namespace reel
