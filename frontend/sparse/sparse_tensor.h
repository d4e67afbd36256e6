// frontend/sparse/sparse_tensor.h — SparseTensor, the nonzero elements of a tensor with their
// indices.
#pragma once

#include "reel/core/base/visibility.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// Elements of a tensor that is zero elsewhere. Elements with equal indices are summed (booleans:
/// or); an element with a negative index is ignored.
///
/// A plain struct, which may be state of a loop; the number of elements may change between
/// iterations. A gradient with respect to a SparseTensor has its cotangents in `values`, at the
/// indices of the argument; its own indices and dense_shape, being integers, are zeros. Source:
/// tf.SparseTensor.
struct SparseTensor {
  Tensor indices;      ///< i32 or i64, [n, rank]: an index of element i for each axis
  Tensor values;       ///< [n]
  Tensor dense_shape;  ///< i32 or i64, [rank]: the sizes of the dense tensor
};

/// Returns the dense tensor. In a trace its sizes are known only during a run; ensure_shape can
/// state them. The cotangent of values is gathered at their indices.
///
/// Throws ArgumentError for an empty member, DTypeError or ShapeError if the members do not fit
/// together, IndexError for an index beyond dense_shape.
Tensor to_dense(const SparseTensor& sparse);
/// Returns the nonzero elements of x (NaN is nonzero) in row-major order. x must have plain, known
/// sizes, otherwise this throws ShapeError. In a trace the number of elements is known only during
/// a run. The gradient flows to these elements.
SparseTensor from_dense(const Tensor& x);

/// Returns the transposed matrix. Throws ShapeError unless the tensor is a matrix.
SparseTensor transpose(const SparseTensor& matrix);

/// Returns the matrix product. a: [M, K], b: [K, N] -> [M, N]; a trace knows only N. For a vector
/// v, reshape: reshape(matmul(a, reshape(v, {-1, 1})), {-1}).
///
/// Gradients flow to the values of a, and to b. Throws ShapeError unless both are matrices with
/// equal K; DTypeError if the dtypes differ; IndexError for an index beyond dense_shape. Sizes that
/// a trace does not know are checked during a run.
/// Cost: 2·n·N flop and n·N elements of memory for n elements.
Tensor matmul(const SparseTensor& a, const Tensor& b);

}  // namespace reel
REEL_API_END
