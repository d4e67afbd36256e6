// trace/executors/dataflow/run_dataflow.h — runs a graph by tokens, as TensorFlow does.
#pragma once

#include <memory>

#include "reel/core/graph/graph.h"
#include "reel/core/graph/graph_runner.h"
#include "reel/trace/executors/dataflow/recorded_run.h"

namespace reel {

/// Runs a graph on its inputs (formal ones, then captures). Each op runs as soon as its inputs are
/// there, on as many threads as pay off, and iterations of loops overlap. Results have the bits of
/// the interpreter.
///
/// Effects (print) happen when data reaches them, and only if an output depends on their result.
/// Collectives always run, one after the other in the order of the program.
/// Throws the error that comes first in the order of the program. Throws CancelledError if the
/// token of a CancellationScope requests a stop.
Tensors run_dataflow(const GraphRef& graph, Tensors&& inputs, const RunOptions& options);
/// Runs the graph as run_dataflow() does and keeps a record of the run with the graph, in place of
/// the previous record. A long run keeps its first 131,072 activations and its last 16,384.
Tensors run_recorded_dataflow(const GraphRef& graph, Tensors&& inputs, const RunOptions& options);
/// Returns the record of the graph's last recorded run; null if there was none.
std::shared_ptr<const RecordedRun> last_recorded_run(const Graph& graph);

/// Runs a lowered graph without optimising it.
///
/// parallel_iterations: most iterations in flight, of every loop; 0: each loop's own limit.
/// record: if not null, receives all events.
/// Throws ArgumentError if the graph does not verify, or an output is dead or never computed.
Tensors run_lowered(LoweredGraph graph, const Tensors& inputs, int parallel_iterations = 0,
                    RecordedRun* record = nullptr);

}  // namespace reel
