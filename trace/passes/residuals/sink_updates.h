// trace/passes/residuals/sink_updates.h — sink_updates, which moves updates of arguments behind the
// reads of these arguments.
#pragma once

#include "reel/core/graph/graph.h"

namespace reel {

/// Moves updates of arguments to the end, so that a plan can make them in place. An update is an
/// element-wise op from an argument to a result of the same type. A plan writes the result over the
/// argument only if no later instruction reads the argument or may fail. Before → after:
///
///   %2 = sub(%w, %g)                 %3 = norm(%w)
///   %3 = norm(%w)             →      %2 = sub(%w, %g)
///   return %2, %3                    return %2, %3
///
/// Reorders the body of a fused op too: a plan may run the body op by op, on tiles of the
/// argument's memory.
///
/// Requires: the graph of a call; bodies and branches do not own their inputs.
/// Preserves: bits, and the order of effects and errors.   Runs: last.
/// Skips: graphs that would gain nothing, because no independent record behind an update reads its
/// argument or may fail.
Ref<Graph> sink_updates(const Graph& graph);

}  // namespace reel
