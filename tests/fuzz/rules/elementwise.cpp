// Rules for element-wise functions of floats and booleans. Some keep their arguments in the range
// in which the function is smooth; the others have lower weights.
#include "reel/core/functions/activations.h"
#include "reel/frontend/transforms/custom_jvp.h"
#include "reel/frontend/transforms/custom_vjp.h"
#include "reel/tests/fuzz/program/families.h"
#include "reel/tests/fuzz/program/typing.h"

namespace reel::fuzz {
namespace {

constexpr Element real = Element::real, boolean = Element::boolean;

/// Operands condition, b, c; a single operand has all dims of the result.
bool choose(Drafter& d, Instruction& in) {
  const int a = d.pick(boolean), b = d.pick(real);
  if (a < 0 || b < 0) return false;
  const auto most = joined_dims(d.program(), d.type(a).dims, d.type(b).dims);
  if (!most) return false;
  const int c = d.pick([&](int v) {
    const auto all = joined_dims(d.program(), *most, d.type(v).dims);
    return d.type(v).element == real && !d.type(v).is_array && all && *all == *most;
  });
  if (c < 0) return false;
  return gives(d, in, {a, b, c}, {.element = real, .dims = *most});
}

/// Operands condition, b, and a literal.
bool choose_number(Drafter& d, Instruction& in) {
  const int a = d.pick(boolean), b = d.pick(real);
  if (a < 0 || b < 0) return false;
  const auto all = joined_dims(d.program(), d.type(a).dims, d.type(b).dims);
  if (!all) return false;
  in.constant = draw_number(d);
  return gives(d, in, {a, b}, {.element = real, .dims = *all});
}

}  // namespace

Rules elementwise_rules() {
  const Typing one = unary(real, real), two = binary(real, real);
  return {
      expression(REEL_EXPRESSION(tanh(a)), 12, one),
      expression(REEL_EXPRESSION(sin(a)), 8, one),
      expression(REEL_EXPRESSION(cos(a)), 4, one),
      expression(REEL_EXPRESSION(sigmoid(a)), 6, one),
      expression(REEL_EXPRESSION(softplus(a)), 3, one),
      expression(REEL_EXPRESSION(erf(a)), 3, one),
      expression(REEL_EXPRESSION(gelu(a)), 3, one),
      expression(REEL_EXPRESSION(gelu(a, GeluForm::tanh)), 2, one),
      expression(REEL_EXPRESSION(-a), 4, one),
      expression(REEL_EXPRESSION(square(a)), 4, one),
      expression(REEL_EXPRESSION(exp(sin(a))), 5, one),
      expression(REEL_EXPRESSION(expm1(tanh(a))), 3, one),
      expression(REEL_EXPRESSION(log(1.5 + sin(a))), 4, one),
      expression(REEL_EXPRESSION(log1p(square(a))), 3, one),
      expression(REEL_EXPRESSION(sqrt(0.5 + square(a))), 4, one),
      expression(REEL_EXPRESSION(rsqrt(1.5 + cos(a))), 3, one),
      expression(REEL_EXPRESSION(reciprocal(2.0 + sin(a))), 3, one),
      expression(REEL_EXPRESSION(pow(1.5 + sin(a), 2.5)), 2, one),
      expression(REEL_EXPRESSION(a * x), 6, one),
      expression(REEL_EXPRESSION(a + x), 6, one),
      expression(REEL_EXPRESSION(x - a), 3, one),
      expression(REEL_EXPRESSION(x / (2.0 + square(a))), 3, one),
      expression(REEL_EXPRESSION(abs(a)), 2, one),
      expression(REEL_EXPRESSION(relu(a)), 3, one),
      expression(REEL_EXPRESSION(silu(a)), 2, one),
      expression(REEL_EXPRESSION(leaky_relu(a)), 1, one),
      expression(REEL_EXPRESSION(elu(a, 1.5)), 1, one),
      expression(REEL_EXPRESSION(log_add_exp(a, x)), 1, one),
      expression(REEL_EXPRESSION(clip(a, -0.5, 0.75)), 2, one),
      expression(REEL_EXPRESSION(maximum(a, x)), 2, one),
      expression(REEL_EXPRESSION(sign(a)), 1, one),
      expression(REEL_EXPRESSION(floor(a)), 1, one),
      expression(REEL_EXPRESSION(ceil(a)), 1, one),
      expression(REEL_EXPRESSION(round(a)), 1, one),
      expression(REEL_EXPRESSION(identity(a)), 2, one),
      expression(REEL_EXPRESSION(checkpoint_name(a, "kept")), 1, one),
      expression(REEL_EXPRESSION(mask_padding(a)), 2, one),
      expression(REEL_EXPRESSION(mask_padding(a, x)), 1, one),
      expression(REEL_EXPRESSION(reciprocal(a)), 1, one),
      expression(REEL_EXPRESSION(log(a)), 1, one),
      expression(REEL_EXPRESSION(sqrt(a - 0.03)), 1, one),
      expression(REEL_EXPRESSION(exp(a)), 1, one),
      expression(REEL_EXPRESSION(zeros_like(a)), 1, one),
      expression(REEL_EXPRESSION(custom_vjp(
                     [](Tensor t) {
                       return std::pair{square(t), t};
                     },
                     [](Tensor u, Tensor dy) { return 2.0 * u * dy; })(a)),
                 2, one),
      expression(REEL_EXPRESSION(custom_jvp([](const Tensor& t) { return sin(t) * t; },
                                            [](const auto& at, const auto& along) -> Tensor {
                                              const Tensor& t = std::get<0>(at);
                                              return std::get<0>(along) * (cos(t) * t + sin(t));
                                            })(a)),
                 3, one),
      expression(REEL_EXPRESSION(a + b), 14, two),
      expression(REEL_EXPRESSION(a - b), 8, two),
      expression(REEL_EXPRESSION(a * b), 14, two),
      expression(REEL_EXPRESSION(a / (1.5 + square(b))), 5, two),
      expression(REEL_EXPRESSION(a / b), 1, two),
      expression(REEL_EXPRESSION(maximum(a, b)), 3, two),
      expression(REEL_EXPRESSION(minimum(a, b)), 3, two),
      expression(REEL_EXPRESSION(log_add_exp(a, b)), 2, two),
      expression(REEL_EXPRESSION(clip(a, b, 1.5)), 1, two),
      expression(REEL_EXPRESSION(pow(1.5 + sin(a), b)), 2, two),
      expression(REEL_EXPRESSION(mod(a, 2.0 + square(b))), 1, two),
      expression(REEL_EXPRESSION(floor_divide(a, 2.0 + square(b))), 1, two),
      expression(REEL_EXPRESSION(a < b), 4, binary(real, boolean)),
      expression(REEL_EXPRESSION(a >= b), 2, binary(real, boolean)),
      expression(REEL_EXPRESSION(a != b), 1, binary(real, boolean)),
      expression(REEL_EXPRESSION(a > x), 4, unary(real, boolean)),
      expression(REEL_EXPRESSION(a <= x), 2, unary(real, boolean)),
      expression(REEL_EXPRESSION(isnan(a)), 1, unary(real, boolean)),
      expression(REEL_EXPRESSION(isfinite(a)), 1, unary(real, boolean)),
      expression(REEL_EXPRESSION(!a), 2, unary(boolean, boolean)),
      expression(REEL_EXPRESSION(a && b), 2, binary(boolean, boolean)),
      expression(REEL_EXPRESSION(a || b), 2, binary(boolean, boolean)),
      expression(REEL_EXPRESSION(logical_xor(a, b)), 2, binary(boolean, boolean)),
      expression(REEL_EXPRESSION(where(a, b, c)), 8, choose),
      expression(REEL_EXPRESSION(where(a, b, x)), 5, choose_number),
      expression(REEL_EXPRESSION(cast(a, real)), 3, unary(boolean, real)),
  };
}

}  // namespace reel::fuzz
