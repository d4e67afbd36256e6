// trace/passes/residuals/sink_updates.h — sink_updates, updates of arguments go behind what reads
// these.
#pragma once

#include "reel/core/graph/graph.h"

namespace reel {

/// Moves element-wise ops that turn an argument into a result of its type behind all records that
/// do not wait for them. A plan writes the result over the argument only if no instruction behind
/// reads the argument or may fail. The same bits.
///
///   %2 = sub(%w, %g)                 %3 = norm(%w)
///   %3 = norm(%w)             →      %2 = sub(%w, %g)
///   return %2, %3                    return %2, %3
///
/// Reorders the body of a fused op likewise: a plan may run the body op by op, on tiles of the
/// argument's memory.
///
/// Leaves a graph as it is if nothing is gained: no record that stands behind an update and does
/// not wait for one reads its argument or may fail. Effects and errors stay in their order. Goes
/// last, for the graph of a call alone: bodies and branches do not own their inputs.
Ref<Graph> sink_updates(const Graph& graph);

}  // namespace reel
