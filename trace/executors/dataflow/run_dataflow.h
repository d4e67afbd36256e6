// trace/executors/dataflow/run_dataflow.h — running a graph by tokens: TensorFlow's model of
// execution.
#pragma once

#include <memory>

#include "reel/core/graph.h"
#include "reel/core/graph_runner.h"
#include "reel/trace/executors/dataflow/recorded_run.h"

namespace reel {

/// Runs a graph on its inputs (formal ones, then captures): each op as soon as its inputs are
/// there, on as many threads as pay, iterations of loops beside each other. The bits of the
/// interpreter.
///
/// Effects (print) happen when data reaches them, and only if something needs what they give back.
/// An error is the one that comes first in the order of the program. Throws CancelledError where a
/// CancellationScope's token is asked to stop.
Tensors run_dataflow(const GraphRef& graph, Tensors&& inputs, const RunOptions& options);
/// The same, keeping a record of the run with the graph, in place of the one before; of a long one
/// the first 131,072 activations and the last 16,384.
Tensors run_recorded_dataflow(const GraphRef& graph, Tensors&& inputs, const RunOptions& options);
/// The record of the graph's last recorded run; null where there was none.
std::shared_ptr<const RecordedRun> last_recorded_run(const Graph& graph);

/// Runs a lowered graph as it is. parallel_iterations: of every loop, 0 for as many as each says;
/// record: all that happened, where not null. Throws ArgumentError where the graph does not verify,
/// or an output is dead.
Tensors run_lowered(LoweredGraph graph, const Tensors& inputs, int parallel_iterations = 0,
                    RecordedRun* record = nullptr);

}  // namespace reel
