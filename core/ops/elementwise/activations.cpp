// Activation functions that are made of other functions.
#include "reel/core/functions/activations.h"

#include <limits>
#include <string_view>
#include <utility>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/op/op_errors.h"
#include "reel/core/ops.h"

namespace reel {
namespace {

/// Returns the tensor of an argument; its memory is not taken, because it is read several times.
const Tensor& float_tensor(std::string_view function, std::string_view role, const Arg& x) {
  if (x.is_number())
    throw ArgumentError(str(function, ": takes a tensor, but was given the number ", x.number()));
  check_defined(function, x.tensor());
  if (!is_float(x.tensor().dtype()))
    throw DTypeError(str(function, ": ", role, " must be f32 or f64, got ", x.tensor().type()));
  return x.tensor();
}

}  // namespace

Tensor silu(const Arg& given) {
  const Tensor& x = float_tensor("silu", "x", given);
  return x * sigmoid(x);
}

Tensor leaky_relu(const Arg& given, double slope) {
  const Tensor& x = float_tensor("leaky_relu", "x", given);
  return where(x > 0, x, x * slope);
}

Tensor elu(const Arg& given, double alpha) {
  const Tensor& x = float_tensor("elu", "x", given);
  const Tensor is_positive = x > 0;
  // Without the inner `where` the exponential of a large x would overflow.
  return where(is_positive, x, expm1(where(is_positive, 0, x)) * alpha);
}

Tensor log_add_exp(const Arg& given_a, const Arg& given_b) {
  if (given_a.is_number() && given_b.is_number())
    throw ArgumentError("log_add_exp: both operands are numbers; one must be a tensor");
  const auto lasting = [](const Arg& x, std::string_view role) {
    return x.is_number() ? x : Arg(float_tensor("log_add_exp", role, x));
  };
  const Arg a = lasting(given_a, "a"), b = lasting(given_b, "b");
  const Tensor difference = a - b;
  // The difference of equal infinities is NaN, and is replaced. The difference of NaN stays NaN.
  const Tensor is_equal = a == b;
  const Tensor is_infinite =
      is_equal && !(abs(a.is_number() ? b : a) < std::numeric_limits<double>::infinity());
  const Tensor d = where(is_infinite, 0, difference);
  const Tensor is_first = d >= 0;
  // The derivative is -1 or 1 also at d = 0: derivatives of any order then follow the formula.
  const Tensor below = where(is_first, -d, d);
  const Tensor larger = where(is_infinite, (a + b) * 0.5, where(is_first, a, b));
  return larger + softplus(below);
}

Tensor glu(const Tensor& given, const Axis& axis, std::optional<Dim> half) {
  const Tensor& x = float_tensor("glu", "x", given);
  const auto [a, b] = split<2>(x, axis, std::move(half));
  return a * sigmoid(b);
}

}  // namespace reel
