// trace/run_plan.h — runs a graph through its plans.
#pragma once

#include <optional>
#include <string>

#include "reel/core/graph/graph.h"
#include "reel/core/graph/graph_runner.h"

namespace reel {

class Profile;

/// Runs a graph through a plan for the sizes of its inputs. The plan is made when such sizes first
/// occur, and is stored with the graph.
///
/// inputs: the formal inputs, then the captures. A result may overwrite a formal input without
/// other references if the input is not read again and nothing can fail from there on.
Tensors run_plan(const GraphRef& graph, Tensors&& inputs, const RunOptions& options);
/// As run_plan(), and counts calls and times of instructions.
Tensors run_profiled_plan(const GraphRef& graph, Tensors&& inputs, const RunOptions& options);

/// Returns the description of the last run's plan (explain.h); nothing if there was no run, or it
/// threw.
std::optional<std::string> explain_plan(const Graph& graph, const Passes& passes, bool is_profiled);

/// The plan of a graph's last run, valid until the next run.
struct Planned {
  GraphRef graph;                    ///< null if no plan has run
  const Profile* profile = nullptr;  ///< null if the run was not counted
  std::string failure = {};          ///< why the interpreter ran the last call; empty: it did not
};
/// Returns the plan of the last run of a graph.
Planned planned_graph(const Graph& graph);

}  // namespace reel
