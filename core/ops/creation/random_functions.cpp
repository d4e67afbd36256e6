// The public functions that draw random tensors.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "reel/core/base/str.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/op_errors.h"
#include "reel/core/ops.h"
#include "reel/core/ops/creation/draw_checks.h"
#include "reel/core/ops/creation/draws.h"
#include "reel/core/ops/elementwise/broadcast.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/runtime/random.h"

namespace reel {
namespace {

/// Checks the arguments before a number is taken from the stream.
TensorType type_to_draw(const Dims& dims, DType dtype, const char* op) {
  if (!is_float(dtype)) throw DTypeError(str(op, ": draws f32 or f64, not ", dtype));
  return as_function(op, [&] { return TensorType(dtype, dims); });
}

Tensor bind_draw(const Op& op, const TensorType& type, double low, double high) {
  const RandomDraw draw = RandomDraw::take();
  return bind(op, {draw.key}, make_attrs(DrawAttrs{type, draw.number, low, high}));
}

/// Draws from [low, 1), with the dims and dtype of x. Only a run may determine some of the sizes.
Tensor uniform_like(const Tensor& x, double low) {
  const TensorType type = x.type().with(x.dims());  // as the body that reads x sees it
  if (!has_unknown_size(type)) return bind_draw(random_uniform_op, type, low, 1);
  const RandomDraw draw = RandomDraw::take();
  return bind(random_uniform_op, {draw.key, x}, make_attrs(DrawAttrs{type, draw.number, low, 1}));
}

}  // namespace

Tensor random_normal(const Dims& dims, DType dtype) {
  return bind_draw(random_normal_op, type_to_draw(dims, dtype, "random_normal"), 0, 1);
}
Tensor random_uniform(const Dims& dims, double low, double high, DType dtype) {
  const TensorType type = type_to_draw(dims, dtype, "random_uniform");
  if (!(low < high))
    throw ArgumentError(str("random_uniform: low must be below high, got [", low, ", ", high, ")"));
  const double largest =
      dtype == f32 ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
  if (!(high - low <= largest))
    throw ArgumentError(str("random_uniform: from ", low, " to ", high,
                            " is a larger distance than ", dtype, " can hold"));
  return bind_draw(random_uniform_op, type, low, high);
}

Tensor random_integers(const Dims& dims, std::int64_t low, std::int64_t high, DType dtype) {
  if (!is_integer(dtype))
    throw DTypeError(str("random_integers: dtype must be i32 or i64, got ", dtype));
  if (low >= high)
    throw ArgumentError(
        str("random_integers: low must be below high, got [", low, ", ", high, ")"));
  const std::uint64_t count = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  if (count > std::uint64_t{1} << 53)
    throw ArgumentError(str("random_integers: [", low, ", ", high, ") has ", count,
                            " integers, more than the 2^53 that a draw distinguishes"));
  if (dtype == i32 && (low < std::numeric_limits<std::int32_t>::min() ||
                       high - 1 > std::numeric_limits<std::int32_t>::max()))
    throw ArgumentError(
        str("random_integers: [", low, ", ", high, ") does not fit i32; give the dtype i64"));
  // Below count after rounding, too: a draw is at most 1 - 2^-53.
  const Tensor offset = floor(random_uniform(dims, 0, 1, f64) * static_cast<double>(count));
  return cast(cast(offset, i64) + low, dtype);
}

Tensor truncated_normal(const Dims& dims, double mean, double stddev, DType dtype) {
  const TensorType type = type_to_draw(dims, dtype, "truncated_normal");
  if (!(stddev >= 0))
    throw ArgumentError(str("truncated_normal: stddev must not be negative, got ", stddev));
  return bind_draw(truncated_normal_op, type, mean, stddev);
}

namespace {
/// Throws ShapeError unless probabilities broadcast to the result.
void check_fits(const TensorType& p, const TensorType& result) {
  constexpr std::string_view kRoles[] = {"result", "p"};
  const TensorType types[] = {result, p};
  if (!same_dims(broadcast("bernoulli", types, kRoles, result.dtype()).dims(), result.dims()))
    throw ShapeError(str("bernoulli: p ", p, " does not broadcast to the dims ", result.dims()));
}
}  // namespace

Tensor bernoulli(const Arg& p, const Dims& dims) {
  if (!p.is_number()) check_defined("bernoulli", p.tensor());
  const DType dtype = p.is_number() ? f32 : p.tensor().dtype();
  if (!is_float(dtype))
    throw DTypeError(str("bernoulli: p must be f32 or f64, got ", p.tensor().type(), "; cast it"));
  const TensorType type = type_to_draw(dims, dtype, "bernoulli");
  if (p.is_number()) {
    if (!(p.number() >= 0 && p.number() <= 1))
      throw ArgumentError(str("bernoulli: p must lie in [0, 1], got ", p.number()));
    return random_uniform(dims) < p.number();
  }
  check_fits(p.tensor().type(), type);
  return random_uniform(dims, 0, 1, dtype) < p;
}

Tensor categorical(const Tensor& logits, const Axis& axis) {
  check_defined("categorical", logits);
  if (!is_float(logits.dtype()))
    throw DTypeError(
        str("categorical: logits must be f32 or f64, got ", logits.type(), "; cast them"));
  const int position = axis.in(logits, "categorical");
  // The argmax of logits + Gumbel noise is distributed as softmax(logits) (Gumbel 1954; Maddison et
  // al. 2014).
  const Tensor checked = checked_logits(stop_gradient(logits), position);
  const Tensor unit = uniform_like(logits, 0x1p-24);
  return argmax(checked - log(-log(unit)), position);
}

Tensor permutation(const Dim& dim) {
  Dims dims = dim.length_dims();
  dims.push_back(dim);
  return argsort(bind_draw(random_uniform_op, type_to_draw(dims, f64, "permutation"), 0, 1), -1);
}

namespace {

/// Slices x to the first position of all other axes: the shape of dropout's mask.
Tensor first_of_others(Tensor x, const std::vector<int>& axes) {
  for (int i = 0; i < x.rank(); ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) x = slice(x, i, 0, 1);
  return x;
}

/// Draws uniform numbers over some axes of x, in a shape that broadcasts to x.
Tensor uniform_over(const Tensor& x, const std::vector<int>& axes) {
  if (has_unknown_size(x.type())) return uniform_like(first_of_others(x, axes), 0);
  Dims dims;
  for (int i = 0; i < x.rank(); ++i) {
    if (std::find(axes.begin(), axes.end(), i) != axes.end())
      dims.push_back(x.dims()[static_cast<std::size_t>(i)]);
    else if (!x.type().is_named())
      dims.emplace_back(1);
  }
  return random_uniform(dims, 0, 1, x.dtype());
}

Tensor drop(const Tensor& x, double rate, const std::vector<int>& axes) {
  check_defined("dropout", x);
  check_float("dropout", x.type(), "cast it to f32 or f64");
  if (!(rate >= 0 && rate <= 1))
    throw ArgumentError(str("dropout: rate must lie in [0, 1], got ", rate));
  if (rate == 0) return x;
  if (rate == 1) return zeros_like(x);
  return where(uniform_over(x, axes) < rate, 0, x * (1 / (1 - rate)));
}

}  // namespace

Tensor dropout(const Tensor& x, double rate) { return drop(x, rate, all_positions("dropout", x)); }
Tensor dropout(const Tensor& x, double rate, const Axes& axes) {
  return drop(x, rate, axes.in(x, "dropout"));
}

}  // namespace reel
