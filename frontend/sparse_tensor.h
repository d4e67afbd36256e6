// frontend/sparse_tensor.h — SparseTensor, the elements of a tensor that are not zero.
#pragma once

#include "reel/core/tensor.h"

namespace reel {

/// Elements of a tensor that is zeros elsewhere, by their indices. Elements of equal indices count
/// as their sum; one with a negative index counts nowhere.
///
/// A plain struct, which may be state of a loop. A gradient is in its values; indices and
/// dense_shape, being integers, have zeros there: it belongs at the indices of the argument. The
/// number of elements may change from iteration to iteration. Booleans count as their disjunction.
/// Source: tf.SparseTensor.
struct SparseTensor {
  Tensor indices;      ///< i32 or i64, [n, rank]: where element i is, an index for each axis
  Tensor values;       ///< [n]
  Tensor dense_shape;  ///< i32 or i64, [rank]: the sizes of the whole tensor
};

/// The whole tensor. Traced, its sizes are known to runs only; ensure_shape says them. The gradient
/// of values is what is at their indices.
///
/// Throws DTypeError or ShapeError where the three do not fit, IndexError for an index beyond
/// dense_shape.
Tensor to_dense(const SparseTensor& sparse);
/// The elements of x that are not zero (NaN is not), in row-major order; x has plain sizes that are
/// known. How many there are, a trace leaves to its runs. The gradient goes to these elements.
SparseTensor from_dense(const Tensor& x);

/// The matrix with rows and columns changed places. Throws ShapeError for what is no matrix.
SparseTensor transpose(const SparseTensor& matrix);

/// Matrix product. a: [M, K], b: [K, N] -> [M, N], of which a trace knows N only. A vector is a b
/// with one column: reshape(matmul(a, reshape(v, {-1, 1})), {-1}).
///
/// Gradients go to the values of a, and to b. Throws ShapeError unless both are matrices and K
/// agrees, DTypeError when dtypes differ, IndexError for an index beyond dense_shape: of what a
/// trace does not know, when it runs.
/// Cost: 2·n·N flop and n·N elements of memory for n elements.
Tensor matmul(const SparseTensor& a, const Tensor& b);

}  // namespace reel
