// Rules for Jacobians and linear maps, which apply many pullbacks or tangents at once, and for
// values with gradients.
#include "reel/frontend/transforms/jacobian.h"

#include <algorithm>

#include "reel/frontend/transforms/grad.h"
#include "reel/tests/fuzz/program/families.h"
#include "reel/tests/fuzz/program/typing.h"

namespace reel::fuzz {
namespace {

constexpr Element real = Element::real;

/// True if a value is real and has at most two axes, of known sizes if they are plain. A Jacobian
/// may have twice as many.
bool has_few(Drafter& d, int value) {
  const std::vector<int>& dims = d.type(value).dims;
  const bool is_known = std::all_of(dims.begin(), dims.end(), [&](int dim) {
    return d.dim(dim).is_named() || d.dim(dim).has_size();
  });
  return is_known && !d.type(value).is_array && d.type(value).element == real && d.rank(value) <= 2;
}

/// Operand a with at most two axes; the result has no dims.
bool of_few(Drafter& d, Instruction& in) {
  // Gradients of derivatives are second gradients, too inexact in f32 for a comparison.
  if (d.program().real != f64) return false;
  const int a = d.pick([&](int v) { return has_few(d, v); });
  return a >= 0 && gives(d, in, {a}, {});
}

/// Operand a with one or two axes, and an axis; the result has no dims.
bool of_few_along(Drafter& d, Instruction& in) {
  if (d.program().real != f64) return false;
  const int a = d.pick([&](int v) { return has_few(d, v) && d.rank(v) > 0; });
  if (a < 0) return false;
  in.axes = {d.pick_axis(a, [](const DimInfo&) { return true; })};
  return gives(d, in, {a}, {});
}

/// Operand a; the result has its dims.
bool of_any(Drafter& d, Instruction& in) {
  return d.program().real == f64 && unary(real, real)(d, in);
}

}  // namespace

Rules jacobian_rules() {
  return {
      expression(REEL_EXPRESSION(sum(
                     square(jacobian([](const Tensor& t) -> Tensor { return sin(t) * t; })(a)))),
                 2, of_few),
      expression(REEL_EXPRESSION(sum(square(
                     jacobian([&](const Tensor& t) -> Tensor { return softmax(t, axes); })(a)))),
                 2, of_few_along),
      expression(REEL_EXPRESSION(sum(sin(
                     jacfwd([&](const Tensor& t) -> Tensor { return cumsum(t * t, axis); })(a)))),
                 2, of_few_along),
      expression(REEL_EXPRESSION(sum(
                     tanh(hessian([](const Tensor& t) -> Tensor { return sum(sin(t) * t); })(a)))),
                 2, of_few),
      expression(
          REEL_EXPRESSION(
              linearize([](const Tensor& t) -> Tensor { return sin(t) * t; }, a).second(tanh(a))),
          3, of_any),
      expression(REEL_EXPRESSION([&] {
                   const auto [y, slope] =
                       value_and_grad([](const Tensor& t) { return sum(sin(t) * t); })(a);
                   return y * slope;
                 }()),
                 3, of_any),
  };
}

}  // namespace reel::fuzz
