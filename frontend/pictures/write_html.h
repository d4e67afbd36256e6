// frontend/pictures/write_html.h — write_html, the page of a graph and of a recorded run.
#pragma once

#include <string>

#include "reel/core/graph/graph.h"
#include "reel/trace/inspection.h"

namespace reel {

/// Implements Graph::write_html. run: a run of the graph's lowered form to step through, or null.
/// Graphs that ran under a tape, and their gradients, have views of their own. A run with more than
/// 20,000 activations is shortened to its first and last ones. Throws IoError.
void write_html(const Graph& graph, const RecordedRun* run, const std::string& path);

}  // namespace reel
