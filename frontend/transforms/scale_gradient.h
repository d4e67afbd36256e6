// frontend/transforms/scale_gradient.h — scale_gradient, a value whose gradient is multiplied.
#pragma once

#include "reel/core/base/visibility.h"
#include "reel/core/functions/operands.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// Returns x, and multiplies its gradient by `factor`. A factor of -1 reverses the gradient (Ganin
/// & Lempitsky 2015); 0 stops it.
///
/// x: floating, any dims. factor: a number, or a tensor of x's dtype that broadcasts to x, for
/// instance one that grows during training; it gets no gradient from x. Derivatives of any order:
/// each one that goes through the value is multiplied.
/// Throws DTypeError for other dtypes, and ShapeError if dims of the factor do not fit.
Tensor scale_gradient(const Tensor& x, const Arg& factor);

}  // namespace reel
REEL_API_END
