// onnx/ops/sizes.h — sizes as values: known numbers, or axes whose size only a run knows.
#pragma once

#include "reel/onnx/call.h"

namespace reel::imported {

inline bool is_known(const Dims& sizes) {
  for (const Dim& size : sizes)
    if (!size.has_size()) return false;
  return true;
}
/// Returns known sizes as numbers. Throws TraceError for a size that only a run knows.
std::vector<std::int64_t> numbers_of(const Dims& sizes);

/// Returns a vector of i64 with these sizes; a constant if all are known.
Value value_of_sizes(const Dims& sizes);
/// Returns one size as a scalar i64.
Value value_of_size(const Dim& size);

/// Returns the elements of x, in row-major order, with plain sizes. Sizes that only a run knows may
/// be sizes of axes of x; one may follow from the other sizes.
Tensor reshape_to(const Tensor& x, const Dims& sizes);

}  // namespace reel::imported
