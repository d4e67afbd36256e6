// trace/executors/leaves/residual_slices.h — ResidualSlices: residuals of which a window of time
// steps is in memory.
#pragma once

#include "reel/core/runtime/residual_source.h"
#include "reel/trace/executors/leaves/leaf_context.h"

namespace reel {

/// Residuals that are recomputed or read from a file when an iteration needs them. Slices that were
/// returned before may then be evicted (ResidualSource::need).
class ResidualSlices {
 public:
  /// slices: the tensor that stands for the residuals. Borrowed.
  ResidualSlices(const LeafContext& loop, const Tensor& slices)
      : loop_(loop), residual_(residual_value(slices)), slices_(&slices) {}

  bool is_chunked() const { return loop_.is_chunked(); }
  /// Returns the slice at a position, which may be retained. Requires a loop that is not chunked.
  Tensor slice(std::int64_t position) const;
  /// Returns the slices of a chunk: a list, or a tensor along `chunk`. Requires a chunked loop.
  Tensor slices_of_chunk(std::int64_t position, const Dim& chunk) const;
  /// Makes the slices at a position present, and returns where they lie in memory; null if they
  /// are not elements side by side.
  char* data(std::int64_t position) const;

 private:
  void need(std::int64_t position) const {
    residual_->steps->need(loop_.first_step_at(position), loop_.steps_at(position));
  }

  LeafContext loop_;
  const ResidualValue* residual_;
  const Tensor* slices_;
};

}  // namespace reel
