#include "reel/frontend/jit.h"

#include <optional>

#include "reel/autodiff/call.h"
#include "reel/autodiff/reverse_call.h"
#include "reel/core/errors.h"
#include "reel/core/str.h"
#include "reel/trace/executors/interpreter.h"
#include "reel/trace/executors/plan/explain.h"
#include "reel/trace/executors/plan/run_plan.h"

namespace reel::detail {
namespace {

std::string explain_graph(const Graph& graph, const JitOptions& options) {
  if (options.executor == Executor::interpreter)
    return "run op by op, by the interpreter\n" + explain_op_by_op(graph);
  std::string result;
  const auto add = [&](const char* title, const Graph& part) {
    const auto text = explain_plan(part, options.passes, options.profile);
    if (text) result += title + *text;
  };
  add("", graph);
  if (const auto reversal = reversal_of(graph)) {
    add("under a tape:\n", *reversal->forward);
    add("its gradient:\n", *reversal->reverse);
  }
  return result.empty() ? "it has not run to its end\n" : result;
}

}  // namespace

std::shared_ptr<TracedFunction> make_traced_function(const JitOptions& options) {
  const bool is_planned = options.executor == Executor::plan;
  if (options.profile && !is_planned)
    throw ArgumentError(str("jit \"", options.name,
                            "\": profile counts instructions of a plan, and the interpreter has "
                            "none; leave out .executor"));
  const GraphRunner runner{is_planned ? options.profile ? run_profiled_plan : run_plan : interpret,
                           options.passes};
  return std::make_shared<TracedFunction>(
      options.name,
      [runner](const GraphRef& graph, Tensors inputs) {
        return call_graph(graph, std::move(inputs), runner);
      },
      [options](const Graph& graph) { return explain_graph(graph, options); });
}

}  // namespace reel::detail
