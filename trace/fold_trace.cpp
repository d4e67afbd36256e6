#include "reel/trace/fold_trace.h"

#include <cstddef>
#include <utility>

#include "reel/core/types/mode.h"
#include "reel/trace/passes/cleanup/sink_transposes.h"
#include "reel/trace/passes/pipeline.h"

namespace reel {
namespace {

/// Gives a graph the names of the graph that it was made from.
Ref<Graph> with_names_of(const Graph& named, Ref<Graph> graph) {
  graph->renames = named.renames;
  graph->input_names = named.input_names;
  graph->output_names = named.output_names;
  return graph;
}

}  // namespace

bool may_fold() {
  return !thread_mode.tape && !thread_mode.builder && !thread_mode.entries &&
         !thread_mode.nan_checks;
}

CapturedGraph fold_trace(const Graph& graph, const Tensors& captured) {
  Ref<Graph> sunk = sink_transposes(graph);
  if (!sunk) {
    CapturedGraph folded = fold_captures(graph, captured);
    if (folded.graph) folded.graph = with_names_of(graph, std::move(folded.graph));
    return folded;
  }
  Optimised optimised = optimise(with_names_of(graph, std::move(sunk)));
  Tensors read;
  for (const int i : optimised.kept_captures) read.push_back(captured[static_cast<std::size_t>(i)]);
  CapturedGraph folded = fold_captures(*optimised.graph, read);
  if (!folded.graph) folded = {std::move(optimised.graph), std::move(read)};
  folded.graph = with_names_of(graph, std::move(folded.graph));
  return folded;
}

}  // namespace reel
