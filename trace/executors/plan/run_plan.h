// trace/executors/plan/run_plan.h — running a graph through its plans.
#pragma once

#include <optional>
#include <string>

#include "reel/core/graph.h"
#include "reel/core/graph_runner.h"

namespace reel {

class Profile;

/// Runs a graph on its inputs (formal ones, then captures) by a plan for their sizes, which is made
/// when such sizes first come and kept with the graph. Results are written over formal inputs that
/// nobody else holds, where they are not needed any more and nothing can fail from there on.
Tensors run_plan(const GraphRef& graph, Tensors&& inputs, const RunOptions& options);
/// The same, and what each instruction takes is counted.
Tensors run_profiled_plan(const GraphRef& graph, Tensors&& inputs, const RunOptions& options);

/// What the plan of the last of such runs is (explain.h); nothing if there is none, or it threw.
std::optional<std::string> explain_plan(const Graph& graph, const Passes& passes, bool is_profiled);

/// What the plan of the last run of a graph runs, and what that took (null where nobody counted);
/// no graph where no plan has run. Good until the next run.
struct Planned {
  GraphRef graph;
  const Profile* profile = nullptr;
  std::string failure = {};  ///< why the last call was left to the interpreter; empty: it was not
};
Planned planned_graph(const Graph& graph);

}  // namespace reel
