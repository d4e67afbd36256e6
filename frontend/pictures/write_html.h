// frontend/pictures/write_html.h — the page of a graph, with a recorded run if there is one.
#pragma once

#include <string>

#include "reel/core/graph.h"
#include "reel/trace/executors/dataflow/recorded_run.h"

namespace reel {

/// Graph::write_html. run: of the graph's lowered form, to be stepped through; null: none. What the
/// graph became under a tape, and its gradient, have views of their own if they have run. Of a run
/// with more than 20,000 activations the page has the first and the last ones.
void write_html(const Graph& graph, const RecordedRun* run, const std::string& path);

}  // namespace reel
