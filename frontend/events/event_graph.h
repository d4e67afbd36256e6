// frontend/events/event_graph.h — graph_message, a graph as EventWriter writes it.
#pragma once

#include <string>

#include "reel/core/graph/graph.h"

namespace reel {

/// Returns the graph as a GraphDef of TensorFlow. A box of its picture (Graph::write_html), such as
/// a loop, a body or a branch, is a scope: a prefix of the names of the nodes in it.
std::string graph_message(const Graph& graph);

}  // namespace reel
