// trace/passes/support/graph_dump.h — GraphDump, which writes the graph after each pass to files.
#pragma once

#include <string>

#include "reel/core/graph/graph.h"

namespace reel {

/// If the environment variable REEL_DUMP_GRAPHS names a folder, writes the graphs of one run of the
/// passes into a new subfolder of it: as text and as a page (Graph::write_html), numbered in the
/// order of the passes. Passes that change nothing write nothing.
///
///   REEL_DUMP_GRAPHS=graphs ./train        graphs/002-step-plan/04-chunk_loops.txt, .html, ...
///
/// The variable is read once per process. A file that cannot be written is reported on standard
/// error, and nothing more is written.
class GraphDump {
 public:
  /// pipeline: names the passes in the subfolder: "graph", "interpreter" or "plan".
  GraphDump(const Graph& first, const char* pipeline);
  /// Writes the graph that the pass made.
  void after(const char* pass, const Graph& graph);

 private:
  std::string folder_;  ///< empty: nothing is written
  std::string last_;    ///< the text of the last graph
  int count_ = 0;
};

}  // namespace reel
