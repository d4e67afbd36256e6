// core/ops/reductions/norm.h — the Euclidean norm of all elements of a tensor.
#pragma once

#include "reel/core/op/op.h"

namespace reel {

extern const Op norm_op;

/// Returns sqrt(Σ x²) as an f64 scalar, without intermediate overflow or underflow. Padding does
/// not count. The gradient is 0 if all elements are 0.
Tensor euclidean_norm(const Tensor& x);

}  // namespace reel
