#include "reel/frontend/recorded_part.h"

#include "reel/autodiff/call.h"
#include "reel/core/mode.h"
#include "reel/trace/executors/interpreter.h"
#include "reel/trace/traced_function.h"

namespace reel {

bool is_recorded_here() { return !is_tracing() && thread_mode.tape; }

TreeLeaves run_recorded(const std::string& name, TreeLeaves arguments,
                        const std::function<TreeLeaves(const TreeLeaves&)>& part) {
  TracedFunction function(
      name,
      [](const GraphRef& graph, Tensors inputs) {
        return call_graph(graph, std::move(inputs), {interpret});
      },
      [](const Graph&) { return std::string(); }, TracedFunction::Form::as_recorded);
  return function(std::move(arguments),
                  [&](const TreeLeaves& promises) {
                    return TracedFunction::Traced{part(promises), nullptr};
                  })
      .leaves;
}

}  // namespace reel
