// frontend/sparse/indexed_slices.h — IndexedSlices, the nonzero rows of a large tensor with their
// indices.
#pragma once

#include "reel/core/base/visibility.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// Rows of a tensor that is zero elsewhere, for example the gradient with respect to an
/// EmbeddingTable. (The gradient with respect to a Tensor is a Tensor, even if only gather reads
/// it.) Rows with equal indices are summed.
///
/// A gradient with respect to an IndexedSlices has its cotangents in `values`, at the indices of
/// the argument; its own indices and dense_shape, being integers, are zeros.
///
/// A plain struct, which may be state of a loop; the number of rows may change between iterations
/// if the invariant allows it. A trace is for one number of rows: take gradients inside the
/// function that jit traces, or pad with indices of -1. Source: tf.IndexedSlices.
struct IndexedSlices {
  Tensor values;   ///< [n, ...], plain sizes: row i is added to row indices[i]
  Tensor indices;  ///< i32 or i64, [n]; a row with a negative index is ignored
  /// i32 or i64, [rank of values]: the sizes of the dense tensor. Required in a state of a loop.
  Tensor dense_shape;
};

/// Returns the dense tensor: zeros, to which the rows are added in their order. In a trace its
/// sizes are known only during a run; ensure_shape can state them.
///
/// Throws ArgumentError for an empty member, DTypeError or ShapeError if the members do not fit
/// together, IndexError for an index beyond dense_shape.
Tensor to_dense(const IndexedSlices& slices);
/// Returns the dense tensor with these dims, so that a trace knows its sizes; dense_shape is not
/// read. Throws as above.
Tensor to_dense(const IndexedSlices& slices, const Dims& dims);

/// Returns the slices with each index once, in ascending order, and its rows summed. The number of
/// rows stays the same: unused ones are at the end, with index -1 and zeros as values. Indices keep
/// their dtype.
///
/// Throws DTypeError or ShapeError if values and indices do not fit together.
IndexedSlices coalesced(const IndexedSlices& slices);

}  // namespace reel
REEL_API_END
