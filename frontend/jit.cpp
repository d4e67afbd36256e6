#include "reel/frontend/jit.h"

#include <optional>
#include <string_view>

#include "reel/autodiff/call.h"
#include "reel/autodiff/reverse_call.h"
#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/runtime/detect_nan.h"
#include "reel/frontend/pictures/lowered_picture.h"
#include "reel/trace/executors/dataflow/run_dataflow.h"
#include "reel/trace/executors/interpreter.h"
#include "reel/trace/executors/plan/base/held_memory.h"
#include "reel/trace/executors/plan/explain/explain.h"
#include "reel/trace/run_plan.h"

namespace reel::detail {
namespace {

std::string explain_graph(const Graph& graph, const Graph& recorded, const JitOptions& options) {
  if (options.executor == Executor::interpreter)
    return "run op by op, by the interpreter\n" + explain_op_by_op(graph);
  if (options.executor == Executor::dataflow)
    return "run by tokens, by the dataflow executor\n" + explain_op_by_op(graph);
  std::string result;
  const auto add = [&](const std::string& title, const Graph& part) {
    const auto text = explain_plan(part, options.passes, options.profile);
    if (text) result += title + *text;
  };
  add("", graph);
  for (const auto& [what, part] : graphs_under_tapes(recorded))
    add(what.substr(std::string_view(", ").size()) + ":\n", *part);
  return result.empty() ? "no run has finished\n" : result;
}

using Run = Tensors (*)(const GraphRef& graph, Tensors&& inputs, const RunOptions& options);

/// Runs a graph under DetectNan.
template <Run run>
Tensors checked(const GraphRef& graph, Tensors&& inputs, const RunOptions& options) {
  const DetectNan guard;
  return run(graph, std::move(inputs), options);
}

Run runner_of(const JitOptions& options) {
  const bool is_checked = options.detect_nan;
  switch (options.executor) {
    case Executor::interpreter:
      return is_checked ? checked<interpret> : interpret;
    case Executor::dataflow:
      if (options.profile)
        return is_checked ? checked<run_recorded_dataflow> : run_recorded_dataflow;
      return is_checked ? checked<run_dataflow> : run_dataflow;
    default:
      if (options.profile) return is_checked ? checked<run_profiled_plan> : run_profiled_plan;
      return is_checked ? checked<run_plan> : run_plan;
  }
}

/// Throws ArgumentError if a position of JitOptions::any_length is beyond the arguments.
void check_positions(const std::vector<AnyLength>& axes, std::size_t arguments) {
  for (const AnyLength& at : axes)
    if (at.argument >= arguments)
      throw ArgumentError(str("jit: any_length names argument ", at.argument, ", but there are ",
                              arguments, " arguments"));
}

/// Returns the names. Throws ArgumentError for a plain size.
std::vector<std::string> names_of_dynamic(const Dims& dims) {
  std::vector<std::string> names;
  for (const Dim& dim : dims) {
    if (!dim.is_named())
      throw ArgumentError(str("jit: dynamic takes named dims, got ", dim,
                              "; plain axes are dynamic by any_length"));
    names.push_back(dim.name());
  }
  return names;
}

}  // namespace

DynamicSizes dynamic_sizes(const TakenLeaves& taken, const std::vector<AnyLength>& axes,
                           const Dims& dims) {
  DynamicSizes found;
  for (const std::size_t leaf : taken.any_length) found.axes.push_back({leaf, 0});
  found.dims = names_of_dynamic(dims);
  if (axes.empty()) return found;
  const Arguments arguments = taken.arguments();
  check_positions(axes, arguments.size());
  std::size_t first = 0;  // the first leaf of the argument
  for (std::size_t position = 0; position < arguments.size(); ++position) {
    const std::size_t count = count_leaves(arguments[position].tree);
    for (const AnyLength& at : axes)
      for (std::size_t i = 0; at.argument == position && i < count; ++i)
        found.axes.push_back({first + i, at.axis});
    first += count;
  }
  return found;
}

RunProfile profile_of(const TracedFunction& traced, const JitOptions& options) {
  if (!options.profile)
    throw ArgumentError(str("jit \"", options.name,
                            "\": nothing has been timed; give it JitOptions{.profile = true}"));
  const Graph& graph = traced.graph();
  std::vector<Picture> parts;
  const auto add = [&](const std::string& title, const Graph& part) {
    if (options.executor == Executor::dataflow) {
      const auto run = last_recorded_run(part);
      if (!run) return;
      parts.push_back(picture_of(*run).picture);
    } else {
      const Planned planned = planned_graph(part);
      if (!planned.profile && planned.failure.empty()) return;
      parts.push_back(planned.profile ? picture_of(*planned.graph, planned.profile) : Picture());
      parts.back().failure = planned.failure;
    }
    parts.back().name = options.name + title;
  };
  add("", graph);
  for (const auto& [what, part] : graphs_under_tapes(traced.recorded_graph())) add(what, *part);
  if (parts.empty()) parts.emplace_back().name = options.name;  // its only call failed
  return RunProfile(std::move(parts));
}

std::shared_ptr<TracedFunction> make_traced_function(const JitOptions& options) {
  if (options.profile && options.executor == Executor::interpreter)
    throw ArgumentError(str("jit \"", options.name,
                            "\": profile counts instructions of a plan, and the interpreter has "
                            "none; leave out .executor"));
  if (options.parallel_iterations < 0)
    throw ArgumentError(
        str("jit \"", options.name,
            "\": parallel_iterations must be at least 1, or 0 for the option of each loop, got ",
            options.parallel_iterations));
  if (options.max_traces < 0)
    throw ArgumentError(str("jit \"", options.name,
                            "\": max_traces must be at least 1, or 0 to keep all traces, got ",
                            options.max_traces));
  if (options.passes.chunk_steps < 0)
    throw ArgumentError(str(
        "jit \"", options.name,
        "\": passes.chunk_steps must be at least 1, or 0 for as many as fit into the cache, got ",
        options.passes.chunk_steps));
  if (options.passes.block_rows < 0)
    throw ArgumentError(
        str("jit \"", options.name,
            "\": passes.block_rows must be at least 1, or 0 for the library's choice, got ",
            options.passes.block_rows));
  names_of_dynamic(options.dynamic);
  const GraphRunner runner{runner_of(options), {options.passes, options.parallel_iterations}};
  return std::make_shared<TracedFunction>(
      options.name,
      [runner](const GraphRef& graph, Tensors&& inputs) {
        return call_graph(graph, std::move(inputs), runner);
      },
      [options](const Graph& graph, const Graph& recorded) {
        return explain_graph(graph, recorded, options);
      },
      options.detect_nan ? TracedFunction::Form::simplified : TracedFunction::Form::folded,
      static_cast<std::size_t>(options.max_traces));
}

void clear_traces(TracedFunction& traced) {
  traced.clear();
  free_held_plan_memory();
}

}  // namespace reel::detail
