// core/ops/sparse.h — elements of a tensor whose places, and whose shape, are tensors.
#pragma once

#include "reel/core/tensor.h"

namespace reel {

// A place is a vector of k indices into the first k axes of a tensor with plain sizes; what is
// there has its other axes. A negative index stands for no place.

/// Zeros of a shape, to which updates are added at their places in order.
///
/// places: i64[n,k]; updates: [n, ...]; shape: i64[rank] -> a tensor whose sizes only the run
/// knows. `what` names the caller in errors. Throws ShapeError where shape and updates do not fit,
/// IndexError for a place outside.
Tensor scatter_places(const std::string& what, const Tensor& places, const Tensor& updates,
                      const Tensor& shape);
/// What is at the places of x: zeros for no place. Throws IndexError for one outside.
Tensor gather_places(const std::string& what, const Tensor& x, const Tensor& places);
/// The sizes of x: i64[rank].
Tensor shape_of(const Tensor& x);

}  // namespace reel
