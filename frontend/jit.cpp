#include "reel/frontend/jit.h"

#include "reel/autodiff/call.h"

namespace reel::detail {

std::shared_ptr<TracedFunction> make_traced_function(const std::string& name) {
  return std::make_shared<TracedFunction>(name, call_graph);
}

}  // namespace reel::detail
