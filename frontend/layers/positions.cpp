#include "reel/frontend/layers/positions.h"

#include <bit>
#include <cmath>
#include <string_view>
#include <vector>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/op/op_errors.h"
#include "reel/core/ops.h"
#include "reel/core/types/mode.h"
#include "reel/frontend/layers/initial_values.h"
#include "reel/frontend/layers/rotate.h"
#include "reel/frontend/loops/whole_function.h"

namespace reel {
namespace {

std::int64_t size_of(std::string_view function, const Dim& dim) {
  if (!dim.has_size() || dim.is_ragged())
    throw ArgumentError(str(function, ": dim ", dim, " must have one known size"));
  return dim.size();
}

/// Returns x · y over the dims of both.
Tensor outer(const Tensor& x, const Tensor& y) {
  Dims dims = x.dims();
  for (const Dim& dim : y.dims()) dims.push_back(dim);
  return expand(x, dims) * expand(y, dims);
}

}  // namespace

Tensor sinusoidal_positions(const Tensor& positions, const Dim& feature, DType dtype) {
  check_defined("sinusoidal_positions", positions);
  detail::check_parameter_dtype("sinusoidal_positions", dtype);
  const std::int64_t n = size_of("sinusoidal_positions", feature);
  std::vector<double> rates, is_odd;
  for (std::int64_t k = 0; k < n; ++k) {
    rates.push_back(std::pow(10000.0, -2.0 * static_cast<double>(k / 2) / static_cast<double>(n)));
    is_odd.push_back(static_cast<double>(k % 2));
  }
  const Tensor angles = outer(cast(positions, dtype), tensor(rates, {feature}, dtype));
  return where(expand(tensor(is_odd, {feature}, dtype) > 0.5, angles.dims()), cos(angles),
               sin(angles));
}

Tensor sinusoidal_positions(const Dim& positions, const Dim& feature, DType dtype) {
  return sinusoidal_positions(range(positions, i32), feature, dtype);
}

Tensor detail::rotated(const Tensor& x, const Dim& feature, const Dim& half, const Tensor& cosines,
                       const Tensor& sines) {
  const auto [a, b] = split<2>(x, feature, half);
  return concat({a * cosines - b * sines, b * cosines + a * sines}, half, feature);
}

Tensor rotary(const Tensor& x, const Dim& feature, const Tensor& positions, double base) {
  check_defined("rotary", x);
  check_defined("rotary", positions);
  for (const Dim& dim : positions.dims())
    if (find(x.dims(), dim) < 0)
      throw ShapeError(
          str("rotary: x ", x.type(), " lacks the dim ", dim, " of positions ", positions.type()));
  if (find(x.dims(), feature) < 0)
    throw ShapeError(str("rotary: x ", x.type(), " has no dim ", feature));
  const std::int64_t n = size_of("rotary", feature);
  if (n % 2) throw ArgumentError(str("rotary: the size of ", feature, " must be even"));
  const auto run = [&] {
    const Dim half("half", n / 2);
    std::vector<double> rates;
    for (std::int64_t i = 0; i < n / 2; ++i)
      rates.push_back(std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(n)));
    const Tensor angles = outer(cast(positions, x.dtype()), tensor(rates, {half}, x.dtype()));
    return detail::rotated(x, feature, half, cos(angles), sin(angles));
  };
  if (!WholeFunctions::are_recorded()) return run();
  return whole_function({"rotary", {x, positions}, {canonical(feature)}, {base}},
                        [&] { return Tensors{run()}; })[0];
}

Tensor alibi_slopes(const Dim& heads, DType dtype) {
  detail::check_parameter_dtype("alibi_slopes", dtype);
  const auto n = static_cast<std::uint64_t>(size_of("alibi_slopes", heads));
  const std::uint64_t power = std::bit_floor(n);
  std::vector<double> slopes;
  for (std::uint64_t h = 0; h < power; ++h)
    slopes.push_back(std::exp2(-8.0 * static_cast<double>(h + 1) / static_cast<double>(power)));
  for (std::uint64_t h = 0; slopes.size() < n; h += 2)
    slopes.push_back(std::exp2(-4.0 * static_cast<double>(h + 1) / static_cast<double>(power)));
  return tensor(slopes, {heads}, dtype);
}

}  // namespace reel
