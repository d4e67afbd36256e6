// core/ops/elementwise/elementwise.h — the element-wise ops, for passes and gradients; their
// literals.
#pragma once

#include <string_view>

#include "reel/core/ops.h"

namespace reel {

extern const Op neg_op, abs_op, sign_op, floor_op, ceil_op, round_op, square_op, relu_op, sqrt_op;
extern const Op exp_op, expm1_op, log_op, log1p_op, sin_op, cos_op, tanh_op, sigmoid_op;
extern const Op softplus_op, erf_op, gelu_op, logical_not_op;
extern const Op add_op, sub_op, mul_op, div_op, remainder_op, floor_divide_op, mod_op, pow_op,
    maximum_op, minimum_op, clip_low_op, clip_high_op;
extern const Op equal_op, not_equal_op, less_op, less_equal_op, greater_op, greater_equal_op;
extern const Op logical_and_op, logical_or_op, logical_xor_op;
/// (1 - y²) g and y (1 - y) g: the gradients of tanh and sigmoid, from their results.
extern const Op tanh_grad_op, sigmoid_grad_op;
/// (Φ(x) + x φ(x)) g: the gradient of gelu.
extern const Op gelu_grad_op;
extern const Op where_op, cast_op;

/// Returns a if the boolean scalar is true, else b, where each was computed as a whole. No
/// cotangent flows to the other one: it may be NaN, and so may the derivative of the ops that made
/// it.
Tensor select_whole(const Tensor& condition, const Tensor& a, const Tensor& b);

/// Returns a number as a tensor without dims, in the dtype of `met`, the tensor that it is combined
/// with.
///
/// Throws DTypeError if that dtype cannot hold it: fractions with integers, numbers other than 0
/// and 1 with booleans, integers out of range. op, role: names in messages.
Tensor literal(std::string_view op, const Arg& number, std::string_view role,
               const TensorType& met);
/// Returns a number as a tensor without dims.
Tensor literal(const Arg& number, DType dtype);

}  // namespace reel
