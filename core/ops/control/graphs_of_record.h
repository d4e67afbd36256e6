// core/ops/control/graphs_of_record.h — the graphs that a record holds in its attributes.
#pragma once

#include <vector>

#include "reel/core/graph/graph.h"

namespace reel {

/// Returns true for the ops that run graphs: loops, conds, checkpointed functions, and the
/// recomputation of residuals. fused_op does not count: its graph is one element-wise op.
bool runs_sub_graphs(const Op& op);
/// Returns true for ops that run graphs, and for custom_vjp, which holds the graph of its gradient.
bool has_sub_graphs(const Op& op);
/// Returns the bodies, branches and functions that a record holds, and the body of fused_op.
std::vector<SubGraph> sub_graphs_of(const OpRecord& record);

}  // namespace reel
