#include "reel/frontend/jit.h"

#include "reel/autodiff/call.h"
#include "reel/trace/executors/interpreter.h"
#include "reel/trace/executors/plan/run_plan.h"

namespace reel::detail {

std::shared_ptr<TracedFunction> make_traced_function(const JitOptions& options) {
  const GraphRunner runner{options.executor == Executor::plan ? run_plan : interpret,
                           options.passes};
  return std::make_shared<TracedFunction>(options.name,
                                          [runner](const GraphRef& graph, Tensors inputs) {
                                            return call_graph(graph, std::move(inputs), runner);
                                          });
}

}  // namespace reel::detail
