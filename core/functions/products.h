// core/functions/products.h — matmul, matrix products.
#pragma once

#include "reel/core/base/visibility.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// Returns the product of a and b, summed over the named dims `contracted`: a: [..., contracted],
/// b: [contracted, ...] -> the dims of both without them.
///
/// Other dims that both have are batch dims; they come first in the result, then a's, then b's.
/// matmul(a, b, Dims{}) sums over no dim: dims that only one operand has form an outer product.
/// Padding of contracted ragged dims is ignored. Throws ShapeError if an operand lacks a contracted
/// dim, DTypeError if dtypes differ or are boolean. Cost: 2·(product of all sizes) flop.
Tensor matmul(const Tensor& a, const Tensor& b, const Dims& contracted);
inline Tensor matmul(const Tensor& a, const Tensor& b, const Dim& contracted) {
  return matmul(a, b, Dims{contracted});
}
/// Returns the product of tensors with plain dims, by NumPy's rules: a: [..., M, K], b: [..., K, N]
/// -> [..., M, N]; vectors drop their dim. Throws ShapeError if K differs, DTypeError if dtypes do.
Tensor matmul(const Tensor& a, const Tensor& b);

}  // namespace reel
REEL_API_END
