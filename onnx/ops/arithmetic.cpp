// Arithmetic, element by element.
#include "reel/core/functions/creation.h"
#include "reel/core/functions/elementwise.h"
#include "reel/core/functions/indices.h"
#include "reel/core/functions/shape.h"
#include "reel/onnx/ops/broadcast.h"
#include "reel/onnx/ops/sizes.h"
#include "reel/onnx/registry.h"

namespace reel::imported {

Tensor second_operand(const Call& call) {
  const Tensor &a = call.tensor(0), &b = call.tensor(1);
  if (call.version() >= 7 || !call.has_attribute("axis")) return b;
  const int after = a.rank() - call.axis(0) - b.rank();
  if (after <= 0) return b;
  Dims dims = b.dims();
  dims.insert(dims.end(), static_cast<std::size_t>(after), Dim(1));
  return reshape(b, dims);
}

namespace {

/// Returns the remainder with the sign of the dividend, as C's fmod. Exact.
Tensor float_remainder(const Tensor& a, const Tensor& b) {
  const Tensor rest = mod(abs(a), abs(b));
  return where(a < 0, -rest, rest);
}

Values run_mod(const Call& call) {
  if (!call.flag("fmod", false)) return binary(call, mod);
  return binary(call, [](const Tensor& a, const Tensor& b) {
    return is_float(a.dtype()) ? float_remainder(a, b) : remainder(a, b);
  });
}

/// The result has the type of the base; an exponent of another type is converted. An integer to a
/// fractional power is computed in f64, and truncated.
Values run_pow(const Call& call) {
  return binary(call, [](const Tensor& base, const Tensor& exponent) {
    if (base.dtype() == exponent.dtype()) return pow(base, exponent);
    if (is_float(base.dtype()) || !is_float(exponent.dtype())) {
      if (base.dtype() == i32) return cast(pow(cast(base, i64), exponent), i32);
      return pow(base, cast(exponent, base.dtype()));
    }
    return cast(pow(cast(base, f64), cast(exponent, f64)), base.dtype());
  });
}

/// Shifts integers that have no sign. Shifts by 64 and more give 0.
Values run_bit_shift(const Call& call) {
  std::vector<std::int64_t> powers(64);
  for (std::size_t i = 0; i < powers.size(); ++i) powers[i] = std::int64_t{1} << i;
  const Tensor bits = cast(call.tensor(1), i64);
  const Tensor factor = gather(tensor(powers), bits, 0, {.clip = true});
  const Tensor x = cast(call.tensor(0), i64);
  const std::string direction = call.text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") call.refuse("direction is LEFT or RIGHT");
  // No number without a sign here has the bit 2^63, so a shift by 63 leaves nothing.
  const Tensor shifted =
      direction == "LEFT" ? x * factor : where(factor < 0, 0, floor_divide(x, factor));
  const Tensor result = where(bits > 63, 0, shifted);
  return {Value::of(cast(stored_as(result, call.type(0)), call.tensor(0).dtype()), call.type(0))};
}

template <Tensor (*fn)(const Arg&)>
Values run_unary(const Call& call) {
  return unary(call, [](const Tensor& x) { return fn(x); });
}
/// A number computed from sizes that only a run knows is such a size, too.
template <Tensor (*fn)(const Arg&, const Arg&)>
Values run_binary(const Call& call) {
  Values results = binary(call, [](const Tensor& a, const Tensor& b) { return fn(a, b); });
  const Tensor& y = results[0].tensor;
  if ((call.in(0).sizes || call.in(1).sizes) && y.type().is_known() && y.numel() == 1)
    results[0].sizes = Dims{computed_size()};
  return results;
}

/// Combines any number of inputs.
template <Tensor (*fn)(const Arg&, const Arg&)>
Tensor combined(const Call& call) {
  Tensor result = call.tensor(0);
  for (std::size_t i = 1; i < call.input_count(); ++i) result = fn(result, call.tensor(i));
  return result;
}
template <Tensor (*fn)(const Arg&, const Arg&)>
Values run_variadic(const Call& call) {
  return {call.like(0, combined<fn>(call))};
}
Values run_mean(const Call& call) {
  return {call.like(0, combined<add>(call) / static_cast<std::int64_t>(call.input_count()))};
}

/// Until version 10 the bounds are attributes, later optional inputs.
Values run_clip(const Call& call) {
  Tensor x = call.tensor(0);
  if (call.version() < 11) {
    constexpr double kLargest = std::numeric_limits<float>::max();
    return {call.like(0, clip(x, call.number("min", -kLargest), call.number("max", kLargest)))};
  }
  if (call.has(1) && call.has(2)) return {call.like(0, clip(x, call.tensor(1), call.tensor(2)))};
  if (call.has(1)) x = maximum(x, call.tensor(1));
  if (call.has(2)) x = minimum(x, call.tensor(2));
  return {call.like(0, x)};
}

// ---- Trigonometric and hyperbolic functions ---------------------------------------------------

Tensor asin(const Tensor& x) { return arctan(x / sqrt((1 - x) * (1 + x))); }
Tensor acos(const Tensor& x) { return arctan(sqrt((1 - x) / (1 + x))) * 2; }
Tensor tan(const Tensor& x) { return sin(x) / cos(x); }
Tensor sinh(const Tensor& x) { return (expm1(x) - expm1(-x)) * 0.5; }
Tensor cosh(const Tensor& x) { return (exp(x) + exp(-x)) * 0.5; }
Tensor asinh(const Tensor& given) {
  const Tensor is_negative = given < 0;
  const Tensor x = where(is_negative, -given, given);
  const Tensor result = log1p(x + x * (x / (1 + sqrt(1 + x * x))));
  return where(is_negative, -result, result);
}
Tensor acosh(const Tensor& x) {
  const Tensor above = x - 1;
  return log1p(above + sqrt(above * (above + 2)));
}
Tensor atanh(const Tensor& x) { return (log1p(x) - log1p(-x)) * 0.5; }

template <Tensor (*fn)(const Tensor&)>
Values run_function(const Call& call) {
  return unary(call, fn);
}

const Rule kRules[] = {
    {"Abs", run_unary<abs>},
    {"Acos", run_function<acos>, "", 7},
    {"Acosh", run_function<acosh>, "", 9},
    {"Add", run_binary<add>},
    {"Asin", run_function<asin>, "", 7},
    {"Asinh", run_function<asinh>, "", 9},
    {"Atan", run_unary<arctan>, "", 7},
    {"Atanh", run_function<atanh>, "", 9},
    {"BitShift", run_bit_shift, "", 11},
    {"Ceil", run_unary<ceil>},
    {"Clip", run_clip},
    {"Cos", run_unary<cos>, "", 7},
    {"Cosh", run_function<cosh>, "", 9},
    {"Div", run_binary<div>},
    {"Erf", run_unary<erf>, "", 9},
    {"Exp", run_unary<exp>},
    {"Floor", run_unary<floor>},
    {"Log", run_unary<log>},
    {"Max", run_variadic<maximum>},
    {"Mean", run_mean},
    {"Min", run_variadic<minimum>},
    {"Mod", run_mod, "", 10},
    {"Mul", run_binary<mul>},
    {"Neg", run_unary<neg>},
    {"Pow", run_pow},
    {"Reciprocal", run_unary<reciprocal>},
    {"Round", run_unary<round>, "", 11},
    {"Sign", run_unary<sign>, "", 9},
    {"Sin", run_unary<sin>, "", 7},
    {"Sinh", run_function<sinh>, "", 9},
    {"Sqrt", run_unary<sqrt>},
    {"Sub", run_binary<sub>},
    {"Sum", run_variadic<add>},
    {"Tan", run_function<tan>, "", 7},
};

}  // namespace

std::span<const Rule> arithmetic_rules() { return kRules; }

}  // namespace reel::imported
