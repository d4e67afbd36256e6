// core/functions/products.h — matmul.
#pragma once

#include "reel/core/tensor.h"

namespace reel {

/// Matrix product over the named dims: a: [..., contracted], b: [contracted, ...] -> dims of both,
/// without them.
///
/// Other dims that both have are batch dims; they come first in the result, then a's, then b's.
/// Padding of contracted ragged dims does not count. Throws ShapeError when an operand lacks a
/// contracted dim, DTypeError when dtypes differ. Cost: 2·(product of all sizes) flop.
Tensor matmul(const Tensor& a, const Tensor& b, const Dims& contracted);
inline Tensor matmul(const Tensor& a, const Tensor& b, const Dim& contracted) {
  return matmul(a, b, Dims{contracted});
}
/// Plain dims, by NumPy's rules: a: [..., M, K], b: [..., K, N] -> [..., M, N]; vectors drop their
/// dim. Throws ShapeError when K differs.
Tensor matmul(const Tensor& a, const Tensor& b);

}  // namespace reel
