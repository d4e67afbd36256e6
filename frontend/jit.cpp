#include "reel/frontend/jit.h"

#include "reel/autodiff/call.h"
#include "reel/trace/executors/interpreter.h"
#include "reel/trace/executors/plan/run_plan.h"

namespace reel::detail {
namespace {

template <GraphRunner kRunner>
Tensors call(const GraphRef& graph, const Tensors& inputs) {
  return call_graph(graph, inputs, kRunner);
}

}  // namespace

std::shared_ptr<TracedFunction> make_traced_function(const JitOptions& options) {
  const bool plans = options.executor == Executor::plan;
  return std::make_shared<TracedFunction>(options.name, plans ? call<run_plan> : call<interpret>);
}

}  // namespace reel::detail
