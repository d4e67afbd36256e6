#include "reel/core/ops/loop/printed_entries.h"

#include "reel/core/graph/graph_builder.h"
#include "reel/core/ops/loop/entries.h"

namespace reel {
namespace {
constinit thread_local PrintedEntries* innermost = nullptr;
}

std::uint64_t PrintedEntries::trace_here() {
  return is_tracing() ? thread_mode.builder->root().serial() : 0;
}

PrintedEntries::PrintedEntries(Tensor running, Tensor iteration)
    : running_(std::move(running)),
      iteration_(std::move(iteration)),
      trace_(trace_here()),
      outer_(innermost) {
  innermost = this;
}
PrintedEntries::~PrintedEntries() { innermost = outer_; }

Tensors PrintedEntries::inputs_for(const TensorType& x) {
  const std::uint64_t trace = trace_here();
  Tensors result;
  bool is_known = true;
  for (PrintedEntries* scan = innermost; scan && scan->trace_ == trace; scan = scan->outer_) {
    scan->is_asked_ = true;
    is_known = is_known && scan->running_.is_defined();
    if (!is_known) continue;
    if (result.empty()) result.push_back(scan->iteration_);
    if (const std::optional<Tensor> mask = leaf_mask(x, scan->running_)) result.push_back(*mask);
  }
  return is_known ? result : Tensors{};
}

}  // namespace reel
