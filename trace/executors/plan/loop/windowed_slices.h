// trace/executors/plan/loop/windowed_slices.h — WindowedSlices: residuals of which a window of time
// steps is in memory.
#pragma once

#include "reel/core/runtime/residual_source.h"
#include "reel/trace/executors/plan/loop/planned_loop.h"

namespace reel {

/// Residuals that are recomputed or read from a file when an iteration needs them. Slices that were
/// set or returned before may then be evicted (ResidualSource::need). Borrows its arguments.
class WindowedSlices {
 public:
  /// slices: the tensor that stands for the residuals `saved`.
  WindowedSlices(const PlannedLoop& loop, const ResidualValue& residual, const Tensor& slices)
      : loop_(&loop), residual_(&residual), slices_(&slices) {}

  /// Sets an input of the body's plan to the slice at a position; of a chunked loop, to the slices
  /// of a chunk.
  void set(Plan& body, std::size_t input, std::int64_t position) const;
  /// Returns the slice at a position, which may be retained. Requires a loop that is not chunked.
  Tensor slice(std::int64_t position) const;

 private:
  Tensor list(std::int64_t position) const;

  const PlannedLoop* loop_;
  const ResidualValue* residual_;
  const Tensor* slices_;
};

}  // namespace reel
