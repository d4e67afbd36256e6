#include "reel/trace/executors/dataflow/run_dataflow.h"

#include <mutex>
#include <utility>

#include "reel/core/ops/control/effects.h"
#include "reel/core/runtime/detect_nan.h"
#include "reel/core/types/mode.h"
#include "reel/trace/executors/dataflow/token_run.h"
#include "reel/trace/executors/interpreter.h"
#include "reel/trace/passes/pipeline.h"

namespace reel {
namespace {

/// The lowered form of a graph, cached with it.
struct DataflowGraph {
  std::size_t formal_count;
  std::vector<int> captures;  ///< indices of the graph's captures that are read
  TokenPlan plan;
  std::mutex mutex;
  std::shared_ptr<const RecordedRun> last;

  DataflowGraph(std::size_t formal_count, Optimised form)
      : formal_count(formal_count), captures(form.kept_captures), plan(lower(form.graph)) {}

  /// Returns the cached form, built on first use. It runs the same ops on the same values as the
  /// interpreter.
  static std::shared_ptr<DataflowGraph> of(const Graph& graph) {
    const std::lock_guard lock(graph.lowered.mutex);
    if (!graph.lowered.value)
      graph.lowered.value =
          std::make_shared<DataflowGraph>(graph.formal_count, optimise_for_interpreter(graph));
    return std::static_pointer_cast<DataflowGraph>(
        std::const_pointer_cast<void>(graph.lowered.value));
  }

  Tensors run(const Tensors& inputs, const RunOptions& options, RunRecorder* recorder) const {
    Tensors given(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(formal_count));
    for (const int i : captures)
      given.push_back(inputs[formal_count + static_cast<std::size_t>(i)]);
    return TokenRun(plan, options.parallel_iterations, recorder).run(given);
  }
};

/// Memory: an activation takes about 50 bytes.
constexpr RecordLimits kKept{.first = std::size_t{1} << 17, .last = std::size_t{1} << 14};

/// Calls run() and completes the record, even if run() throws.
template <class F>
Tensors finished(RunRecorder& recorder, const F& run) {
  try {
    Tensors outputs = run();
    recorder.finish();
    return outputs;
  } catch (const std::exception& error) {
    try {
      recorder.finish(error.what());
    } catch (const std::exception&) {  // the run's own error takes precedence
    }
    throw;
  }
}

/// Returns run(), or the interpreter's results if DetectNan is active and run() finds a NaN: ops
/// may have left their loops, and finished entries count, so that only the interpreter can tell if
/// and where the program makes one.
template <class F>
Tensors run_as_checked(const GraphRef& graph, Tensors& inputs, const F& run) {
  if (!thread_mode.nan_checks) return run();
  if (!has_lasting_effects(*graph)) try {
      return run();
    } catch (const NumericsError&) {
    }
  return interpret(graph, std::move(inputs));
}

}  // namespace

Tensors run_dataflow(const GraphRef& graph, Tensors&& inputs, const RunOptions& options) {
  const ModeScope plain({});
  return run_as_checked(graph, inputs,
                        [&] { return DataflowGraph::of(*graph)->run(inputs, options, nullptr); });
}

Tensors run_recorded_dataflow(const GraphRef& graph, Tensors&& inputs, const RunOptions& options) {
  const ModeScope plain({});
  const std::shared_ptr<DataflowGraph> form = DataflowGraph::of(*graph);
  const auto record = std::make_shared<RecordedRun>();
  record->graph = form->plan.graph;
  RunRecorder recorder(*record, kKept);
  const auto keep = [&] {
    const std::lock_guard lock(form->mutex);
    form->last = record;
  };
  try {
    Tensors outputs = run_as_checked(graph, inputs, [&] {
      return finished(recorder, [&] { return form->run(inputs, options, &recorder); });
    });
    keep();
    return outputs;
  } catch (...) {
    keep();
    throw;
  }
}

std::shared_ptr<const RecordedRun> last_recorded_run(const Graph& graph) {
  const std::lock_guard lock(graph.lowered.mutex);
  if (!graph.lowered.value) return nullptr;
  auto& form =
      const_cast<DataflowGraph&>(*static_cast<const DataflowGraph*>(graph.lowered.value.get()));
  const std::lock_guard last(form.mutex);
  return form.last;
}

Tensors run_lowered(LoweredGraph graph, const Tensors& inputs, int parallel_iterations,
                    RecordedRun* record) {
  verify(graph);
  const TokenPlan plan(std::move(graph));
  if (!record) return TokenRun(plan, parallel_iterations, nullptr).run(inputs);
  *record = {};
  record->graph = plan.graph;
  RunRecorder recorder(*record, {});
  return finished(recorder,
                  [&] { return TokenRun(plan, parallel_iterations, &recorder).run(inputs); });
}

}  // namespace reel
