// core/functions/elementwise.h — functions of elements, and the operators.
#pragma once

#include "reel/core/functions/operands.h"
#include "reel/core/tensor.h"

namespace reel {

// Functions of one tensor keep its type. What takes floats throws DTypeError for others; errors are
// those of a result of about 1 (ulp: units in the last place), unless said otherwise.

Tensor neg(const Arg& x);
Tensor abs(const Arg& x);
/// -1, 0 or 1; NaN stays. The gradient is 0.
Tensor sign(const Arg& x);
/// To the next whole number below, above, or nearest (halves to the even one, as in NumPy).
/// Integers stay as they are. The gradient is 0.
Tensor floor(const Arg& x);
Tensor ceil(const Arg& x);
Tensor round(const Arg& x);
Tensor square(const Arg& x);
Tensor sqrt(const Arg& x);
/// 1 / sqrt(x), and 1 / x, of floats.
Tensor rsqrt(const Arg& x);
Tensor reciprocal(const Arg& x);
Tensor exp(const Arg& x);
/// exp(x) - 1, and log(1 + x), exact to 2 ulp near 0 too.
Tensor expm1(const Arg& x);
Tensor log(const Arg& x);
Tensor log1p(const Arg& x);
/// Of radians, to 3 ulp; those beyond 1e5 take ten times as long.
Tensor sin(const Arg& x);
Tensor cos(const Arg& x);
Tensor tanh(const Arg& x);
Tensor sigmoid(const Arg& x);
/// log(1 + exp(x)), which overflows nowhere; its gradient is sigmoid(x).
Tensor softplus(const Arg& x);
/// The error function, to 3 ulp.
Tensor erf(const Arg& x);
/// How gelu is computed.
enum class GeluForm { exact, tanh };
/// x Φ(x), where Φ is the distribution function of a standard normal variable, to 8 ulp for x > -5
/// (without FMA 16). GeluForm::tanh: x/2 (1 + tanh(√(2/π) (x + 0.044715 x³))), for models that were
/// trained so. Source: Hendrycks & Gimpel (2016), section 2.
Tensor gelu(const Arg& x, GeluForm form = GeluForm::exact);
Tensor relu(const Arg& x);
Tensor logical_not(const Arg& x);
/// Booleans over the dims of x; of integers none is NaN or infinite.
Tensor isnan(const Arg& x);
Tensor isinf(const Arg& x);
Tensor isfinite(const Arg& x);

Tensor add(const Arg& a, const Arg& b);
Tensor sub(const Arg& a, const Arg& b);
Tensor mul(const Arg& a, const Arg& b);
/// Integers divide as in C++ (towards zero); a zero divisor gives 0.
Tensor div(const Arg& a, const Arg& b);
/// The remainder of div, as C++'s %.
Tensor remainder(const Arg& a, const Arg& b);
/// As in NumPy: the quotient rounded towards minus infinity, with gradient 0, and the remainder
/// that goes with it, which has the sign of b. A zero divisor gives 0 for integers; for floats a /
/// b, and NaN for mod. Floats are exact.
Tensor floor_divide(const Arg& a, const Arg& b);
Tensor mod(const Arg& a, const Arg& b);
Tensor pow(const Arg& a, const Arg& b);
/// NaN wins, as in NumPy. The gradient goes to the operand that wins; equal ones share it, and so
/// do two NaN.
Tensor maximum(const Arg& a, const Arg& b);
Tensor minimum(const Arg& a, const Arg& b);
/// x where low <= x <= high, else the bound that it is beyond; high where low > high. NaN stays
/// NaN, and a bound that is NaN makes it. A number takes the dtype of x. The gradient of x passes
/// where low <= x <= high, and where x is NaN, that of a bound elsewhere.
Tensor clip(const Arg& x, const Arg& low, const Arg& high);

/// Comparisons give booleans.
Tensor equal(const Arg& a, const Arg& b);
Tensor not_equal(const Arg& a, const Arg& b);
Tensor less(const Arg& a, const Arg& b);
Tensor less_equal(const Arg& a, const Arg& b);
Tensor greater(const Arg& a, const Arg& b);
Tensor greater_equal(const Arg& a, const Arg& b);
Tensor logical_and(const Arg& a, const Arg& b);
Tensor logical_or(const Arg& a, const Arg& b);
Tensor logical_xor(const Arg& a, const Arg& b);

/// a where condition holds, else b. The result has the dims of all three, of which one operand must
/// have all.
Tensor where(const Arg& condition, const Arg& a, const Arg& b);
Tensor cast(const Tensor& x, DType dtype);

inline Tensor operator-(const Tensor& x) { return neg(x); }
inline Tensor operator-(Tensor&& x) { return neg(std::move(x)); }
inline Tensor operator!(const Tensor& x) { return logical_not(x); }
Tensor operator+(const Arg& a, const Arg& b);
Tensor operator-(const Arg& a, const Arg& b);
Tensor operator*(const Arg& a, const Arg& b);
Tensor operator/(const Arg& a, const Arg& b);
Tensor operator%(const Arg& a, const Arg& b);
Tensor operator==(const Arg& a, const Arg& b);
Tensor operator!=(const Arg& a, const Arg& b);
Tensor operator<(const Arg& a, const Arg& b);
Tensor operator<=(const Arg& a, const Arg& b);
Tensor operator>(const Arg& a, const Arg& b);
Tensor operator>=(const Arg& a, const Arg& b);
Tensor operator&&(const Arg& a, const Arg& b);
Tensor operator||(const Arg& a, const Arg& b);

}  // namespace reel
