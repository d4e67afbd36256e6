// core/ops/sparse.h — elements of a tensor whose places, and whose shape, are tensors.
#pragma once

#include "reel/core/tensor.h"

namespace reel {

// A place is a vector of k indices into the first k axes of a tensor with plain sizes, or for k = 1
// the index alone; what is there has its other axes. A negative index stands for no place.

/// Zeros of a shape, to which updates are added at their places in order.
///
/// places: i64[n,k] or i64[n]; updates: [n, ...]; shape: i64[rank] -> a tensor whose sizes only the
/// run knows. `what` names the caller in errors. Throws ShapeError where shape and updates do not
/// fit, IndexError for a place outside.
Tensor scatter_places(const std::string& what, const Tensor& places, const Tensor& updates,
                      const Tensor& shape);
/// What is at the places of x: zeros for no place. Throws IndexError for one outside.
Tensor gather_places(const std::string& what, const Tensor& x, const Tensor& places);
/// The places of elements of a sparse matrix that is multiplied with b, checked: i64[n,2]. Where
/// one of its two indices is negative, both are -1, so that nothing is read for it.
///
/// places: i64[n,2]; values: [n]; shape: i64[2], [M, K]; b: [K, N]. Throws ShapeError where they do
/// not fit together, DTypeError where dtypes differ, IndexError for a place outside of shape.
Tensor matrix_places(const Tensor& places, const Tensor& values, const Tensor& shape,
                     const Tensor& b);
/// The sizes of x: i64[rank].
Tensor shape_of(const Tensor& x);

}  // namespace reel
