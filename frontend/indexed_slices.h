// frontend/indexed_slices.h — IndexedSlices, a large tensor of which few rows are not zero.
#pragma once

#include "reel/core/tensor.h"

namespace reel {

/// Rows of a tensor that is zeros elsewhere, such as the gradient of an EmbeddingTable (that of a
/// Tensor is a Tensor, if it was only read by gather, too). Rows of equal index count as their sum.
///
/// A gradient is in its values; indices and dense_shape, being integers, have zeros there: it
/// belongs at the indices of the argument.
///
/// A plain struct, which may be state of a loop: one iteration may have more rows than the one
/// before where the invariant lets it. A trace is for one number of rows: take gradients inside of
/// the function that jit traces, or fill up with indices of -1. Source: tf.IndexedSlices.
struct IndexedSlices {
  Tensor values;   ///< [n, ...], plain sizes: row i of these is added to row indices[i]
  Tensor indices;  ///< i32 or i64, [n]; a negative one stands for no row
  /// i32 or i64, [rank of values]: the sizes of the whole tensor. A state of a loop needs one.
  Tensor dense_shape;
};

/// The whole tensor: zeros, to which the rows are added in their order. Traced, its sizes are known
/// to runs only; ensure_shape says them.
///
/// Throws DTypeError or ShapeError where the three do not fit, IndexError for an index beyond
/// dense_shape.
Tensor to_dense(const IndexedSlices& slices);
/// The same as a tensor with these dims, whose sizes a trace then knows; dense_shape is not read.
Tensor to_dense(const IndexedSlices& slices, const Dims& dims);

/// The same with each index once, in ascending order, and its rows added up. There are as many
/// places as before; those not needed are at the end, with index -1 and zeros as values. Indices
/// keep their dtype.
///
/// Throws DTypeError or ShapeError where values and indices do not fit.
IndexedSlices coalesced(const IndexedSlices& slices);

}  // namespace reel
