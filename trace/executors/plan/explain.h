// trace/executors/plan/explain.h — explain, a plan in words.
#pragma once

#include <string>

#include "reel/core/graph.h"
#include "reel/trace/executors/plan/plan.h"

namespace reel {

/// What a plan has become after a run: its bytes, and of each loop, those inside others indented,
/// what was moved out of it, packed, fused and saved, how it is cut and what it takes; and why not,
/// where that is so. in_place: what is said of arguments (in_place.h).
std::string explain(const Plan& plan, const std::string& in_place);

/// The loops of a graph that the interpreter runs, a line for each and for what it takes and gives.
std::string explain_op_by_op(const Graph& graph, const std::string& indent = "");

}  // namespace reel
