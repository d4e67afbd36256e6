// trace/executors/plan/explain/explain.h — explain: describes a plan as text.
#pragma once

#include <string>

#include "reel/core/graph/graph.h"
#include "reel/trace/executors/plan/plan.h"

namespace reel {

/// Returns a description of a plan after a run: its bytes, and the loops in it, inner ones
/// indented. For each loop it lists the ops moved out of it, packed matrices, fused ops, residuals,
/// row blocks and times. If an optimisation was not done, it gives the reason.
///
/// in_place: the text about arguments (donation_report.h).
std::string explain(const Plan& plan, const std::string& in_place);

/// Returns a description of the loops of a graph that the interpreter runs: a line for each loop,
/// and lines for its inputs and outputs.
std::string explain_op_by_op(const Graph& graph, const std::string& indent = "");

}  // namespace reel
