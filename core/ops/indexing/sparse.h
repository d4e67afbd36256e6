// core/ops/indexing/sparse.h — reads and writes elements at places, and with a shape, that are
// tensors.
#pragma once

#include "reel/core/types/tensor.h"

namespace reel {

// A place is a vector of k indices into the first k axes of a tensor with plain sizes. For k = 1 it
// may also be the index alone. Its value has the tensor's other axes. A negative index stands for
// no place.

/// Returns zeros of a shape, with updates added at their places in order.
///
/// places: i64[n,k] or i64[n]; updates: [n, ...]; shape: i64[rank]. Only the run determines the
/// sizes of the result. `what` is the caller's name in messages. Throws ShapeError if shape and
/// updates do not fit, IndexError for a place outside.
Tensor scatter_places(const std::string& what, const Tensor& places, const Tensor& updates,
                      const Tensor& shape);
/// Returns the values at places of x, zeros for no place. Throws IndexError for a place outside.
Tensor gather_places(const std::string& what, const Tensor& x, const Tensor& places);
/// Returns the checked places of a sparse matrix that is multiplied with b: i64[n,2]. If an index
/// of a place is negative, both become -1, so that nothing is read for it.
///
/// places: i64[n,2]; values: [n]; shape: i64[2], [M, K]; b: [K, N]. Throws ShapeError if they do
/// not fit together, DTypeError if dtypes differ, IndexError for a place outside of shape.
Tensor matrix_places(const Tensor& places, const Tensor& values, const Tensor& shape,
                     const Tensor& b);
/// Throws ShapeError unless the indices of IndexedSlices are a vector of a plain size.
void check_row_indices(const TensorType& indices);
/// Returns the sizes of x: i64[rank].
Tensor shape_of(const Tensor& x);

}  // namespace reel
