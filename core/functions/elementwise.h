// core/functions/elementwise.h — element-wise functions, and the operators.
#pragma once

#include "reel/core/base/visibility.h"
#include "reel/core/functions/operands.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

// Functions of one tensor keep its type. Functions of floats throw DTypeError for other dtypes.
// Unless stated otherwise, errors in ulp (units in the last place) are for results of about 1.

/// Return -x, and the absolute value of x.
Tensor neg(const Arg& x);
Tensor abs(const Arg& x);
/// Returns -1, 0 or 1; NaN stays NaN. The gradient is 0.
Tensor sign(const Arg& x);
/// Round down, up, or to nearest (halves to even, as in NumPy). Integers are unchanged. The
/// gradient is 0.
Tensor floor(const Arg& x);
Tensor ceil(const Arg& x);
Tensor round(const Arg& x);
/// Returns x².
Tensor square(const Arg& x);
/// Returns the square root, NaN for negative numbers.
Tensor sqrt(const Arg& x);
/// Return 1 / sqrt(x) and 1 / x, for floats.
Tensor rsqrt(const Arg& x);
Tensor reciprocal(const Arg& x);
/// Return e to the power of x, and the natural logarithm of x.
Tensor exp(const Arg& x);
Tensor log(const Arg& x);
/// Return exp(x) - 1 and log(1 + x), to 2 ulp also near 0.
Tensor expm1(const Arg& x);
Tensor log1p(const Arg& x);
/// Take radians; to 3 ulp. Arguments beyond 1e5 take ten times as long.
Tensor sin(const Arg& x);
Tensor cos(const Arg& x);
/// Returns the angle in radians whose tangent is x, from -π/2 to π/2; to 3 ulp.
Tensor arctan(const Arg& x);
/// Return the hyperbolic tangent, and 1 / (1 + exp(-x)).
Tensor tanh(const Arg& x);
Tensor sigmoid(const Arg& x);
/// Returns log(1 + exp(x)), without overflow. The gradient is sigmoid(x).
Tensor softplus(const Arg& x);
/// Returns the error function, to 3 ulp.
Tensor erf(const Arg& x);
/// The formula of gelu.
enum class GeluForm { exact, tanh };
/// Returns x Φ(x), where Φ is the distribution function of a standard normal variable; to 8 ulp for
/// x > -5 (without FMA to 16 ulp). GeluForm::tanh: x/2 (1 + tanh(√(2/π) (x + 0.044715 x³))), for
/// models trained with this form. Source: Hendrycks & Gimpel (2016), section 2.
Tensor gelu(const Arg& x, GeluForm form = GeluForm::exact);
/// Returns max(x, 0).
Tensor relu(const Arg& x);
/// Returns the negation of booleans.
Tensor logical_not(const Arg& x);
/// Return booleans over the dims of x. Integers are never NaN or infinite.
Tensor isnan(const Arg& x);
Tensor isinf(const Arg& x);
Tensor isfinite(const Arg& x);

/// Return a + b, a - b and a * b.
Tensor add(const Arg& a, const Arg& b);
Tensor sub(const Arg& a, const Arg& b);
Tensor mul(const Arg& a, const Arg& b);
/// Returns a / b. Integers divide as in C++ (towards zero); a zero divisor gives 0.
Tensor div(const Arg& a, const Arg& b);
/// Returns the remainder of div, as C++'s %.
Tensor remainder(const Arg& a, const Arg& b);
/// Return, as NumPy does, the quotient rounded towards minus infinity (with gradient 0), and its
/// remainder, which has the sign of b. With a zero divisor: 0 for integers; for floats a / b, and
/// NaN for mod. Results of floats are exact.
Tensor floor_divide(const Arg& a, const Arg& b);
Tensor mod(const Arg& a, const Arg& b);
/// Returns a to the power of b. The numbers 2, 3, 0.5 and -1 as b mean square(a), a · square(a),
/// sqrt(a) and reciprocal(a).
Tensor pow(const Arg& a, const Arg& b);
/// Return the larger or the smaller operand; NaN if either is NaN, as in NumPy. The gradient goes
/// to the selected operand; equal operands share it, and so do two NaN.
Tensor maximum(const Arg& a, const Arg& b);
Tensor minimum(const Arg& a, const Arg& b);
/// Returns x limited to [low, high]; `high` where low > high. The result is NaN where x or the
/// bound is NaN. A number takes the dtype of x. The gradient goes to x where low <= x <= high or x
/// is NaN, and to the bound elsewhere.
Tensor clip(const Arg& x, const Arg& low, const Arg& high);

/// Compare elements, and return booleans.
Tensor equal(const Arg& a, const Arg& b);
Tensor not_equal(const Arg& a, const Arg& b);
Tensor less(const Arg& a, const Arg& b);
Tensor less_equal(const Arg& a, const Arg& b);
Tensor greater(const Arg& a, const Arg& b);
Tensor greater_equal(const Arg& a, const Arg& b);
/// Return booleans. a, b: boolean.
Tensor logical_and(const Arg& a, const Arg& b);
Tensor logical_or(const Arg& a, const Arg& b);
Tensor logical_xor(const Arg& a, const Arg& b);

/// Returns a where the condition is true, else b. The result has the dims of all three; one operand
/// must have all. Throws DTypeError unless the condition is boolean, ArgumentError for a number.
Tensor where(const Arg& condition, const Arg& a, const Arg& b);
/// Returns x with its elements converted to a dtype; x itself if it has this dtype.
Tensor cast(const Tensor& x, DType dtype);

/// Return -x, and the negation of booleans.
inline Tensor operator-(const Tensor& x) { return neg(x); }
inline Tensor operator-(Tensor&& x) { return neg(std::move(x)); }
inline Tensor operator!(const Tensor& x) { return logical_not(x); }
/// Return add(a, b), sub(a, b), mul(a, b), div(a, b) and remainder(a, b).
Tensor operator+(const Arg& a, const Arg& b);
Tensor operator-(const Arg& a, const Arg& b);
Tensor operator*(const Arg& a, const Arg& b);
Tensor operator/(const Arg& a, const Arg& b);
Tensor operator%(const Arg& a, const Arg& b);

/// Assign x + y, x - y, x * y and x / y to x; in place if nothing else holds x. x may get other
/// dims, as a sum that begins with a scalar does. If they throw, x is unchanged.
inline Tensor& operator+=(Tensor& x, const Arg& y) { return x = std::move(x) + y; }
inline Tensor& operator-=(Tensor& x, const Arg& y) { return x = std::move(x) - y; }
inline Tensor& operator*=(Tensor& x, const Arg& y) { return x = std::move(x) * y; }
inline Tensor& operator/=(Tensor& x, const Arg& y) { return x = std::move(x) / y; }

/// Compare elements, or combine booleans, as equal, not_equal, less, less_equal, greater,
/// greater_equal, logical_and and logical_or do.
Tensor operator==(const Arg& a, const Arg& b);
Tensor operator!=(const Arg& a, const Arg& b);
Tensor operator<(const Arg& a, const Arg& b);
Tensor operator<=(const Arg& a, const Arg& b);
Tensor operator>(const Arg& a, const Arg& b);
Tensor operator>=(const Arg& a, const Arg& b);
Tensor operator&&(const Arg& a, const Arg& b);
Tensor operator||(const Arg& a, const Arg& b);

}  // namespace reel
REEL_API_END
