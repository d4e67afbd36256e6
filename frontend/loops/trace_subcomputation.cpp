#include "reel/frontend/loops/trace_subcomputation.h"

#include "reel/autodiff/call.h"
#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/types/mode.h"
#include "reel/trace/executors/interpreter.h"
#include "reel/trace/traced_function.h"

namespace reel {

bool is_recorded_here() { return !is_tracing() && thread_mode.tape; }

TreeLeaves run_recorded(const std::string& what, TreeLeaves arguments,
                        const std::function<TreeLeaves(const TreeLeaves&)>& part,
                        const char* purpose) {
  TracedFunction function(
      what,
      [](const GraphRef& graph, Tensors&& inputs) {
        return call_graph(graph, std::move(inputs), {interpret});
      },
      [](const Graph&, const Graph&) { return std::string(); }, TracedFunction::Form::as_recorded);
  const auto traced = [&](const TreeLeaves& promises) {
    try {
      return TracedFunction::Recorded{{part(promises), {}}, {}, {}};
    } catch (TraceError& error) {  // eager callers do not expect a TraceError: explain it
      error.add_line(str(what, " is recorded in eager mode, too, ", purpose));
      throw;
    }
  };
  return function(typeid(void), arguments, traced).leaves;  // called once
}

}  // namespace reel
