// onnx/ops/convert.h — conversions that several ops need.
#pragma once

#include "reel/onnx/call.h"

namespace reel::imported {

/// Returns x converted as Cast does: fractions are truncated, integers wrap around, every number
/// but 0 is true. Throws DTypeError for a type without a dtype.
Tensor converted(const Tensor& x, ElementType from, ElementType to,
                 const StoreOptions& options = {});

/// Returns x broadcast to plain sizes, as NumPy does; a size of 1 leaves a larger axis of x as it
/// is (Expand).
Tensor expand_plain(const Tensor& x, const Dims& sizes);

}  // namespace reel::imported
