#include "reel/frontend/layers/initial_values.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <tuple>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/dims/same_name.h"
#include "reel/core/ops.h"
#include "reel/core/types/empty_tensor.h"
#include "reel/frontend/loops/while_loop.h"

namespace reel {
namespace {

double over_fan_in(const char* function, double scale, std::int64_t fan_in) {
  if (fan_in < 1) throw ArgumentError(str(function, ": fan_in must be positive, got ", fan_in));
  return scale / static_cast<double>(fan_in);
}

Tensor normal(const Dims& dims, double variance, DType dtype) {
  return random_normal(dims, dtype) * std::sqrt(variance);
}
Tensor uniform(const Dims& dims, double variance, DType dtype) {
  const double limit = std::sqrt(3 * variance);
  return random_uniform(dims, -limit, limit, dtype);
}

void check_matrix(const char* function, const Dims& dims, bool is_matrix) {
  if (!is_matrix) throw ArgumentError(str(function, ": takes a matrix, got the dims ", dims));
  for (const Dim& dim : dims)
    if (!dim.has_size() || dim.is_ragged())
      throw ArgumentError(str(function, ": dims must have one known size, got ", dim));
}

/// Moves all singular values in (0, √3) towards 1 by Newton-Schulz iterations, x (3 - xᵀx) / 2,
/// until no element of xᵀx differs from the unit matrix by more than the tolerance: Björck & Bowie
/// (1971).
Tensor moved_to_one(const Tensor& start, std::int64_t columns, double tolerance) {
  const DType dtype = start.dtype();
  const Tensor unit = one_hot(range(columns), columns, dtype);
  // Small singular values grow by half in an iteration: 200 are enough for any f64.
  const auto result = while_loop(
      [&](const Tensor&, const Tensor& error, const Tensor& iteration) {
        return error > tolerance && iteration < 200;
      },
      [&](const Tensor& x, const Tensor&, const Tensor& iteration) {
        const Tensor products = matmul(transpose(x, {1, 0}), x);
        const Tensor next = x * 1.5 - matmul(x, products) * 0.5;
        return std::tuple{next, max(abs(products - unit), {0, 1}), iteration + 1};
      },
      std::tuple{start, scalar(1.0, dtype), scalar(0)}, {.back_prop = false, .name = "orthogonal"});
  return std::get<0>(result);
}

/// Returns the orthogonal factor of the polar decomposition of a normal random matrix with at
/// least as many rows as columns; the matrix is f64. The distribution does not change if a rotation
/// is applied to the matrix, so the factor's does not either. Most iterations are in f32, which
/// takes half the time; the last ones in f64 remove its errors.
Tensor orthogonal_factor(const Tensor& drawn, std::int64_t rows, std::int64_t columns) {
  // The largest singular value is near √rows + √columns; that it is above √3 (√rows + √columns + 6)
  // has the probability e^-50.
  const double bound =
      std::sqrt(static_cast<double>(rows)) + std::sqrt(static_cast<double>(columns)) + 6;
  const Tensor close = moved_to_one(cast(drawn / bound, f32), columns, 1e-4);
  return moved_to_one(cast(close, f64), columns, 1e-9);
}

}  // namespace

Tensor glorot_uniform(const Dims& dims, std::int64_t fan_in, std::int64_t fan_out, DType dtype) {
  if (fan_in < 0 || fan_out < 0 || fan_in + fan_out == 0)
    throw ArgumentError(
        str("glorot_uniform: fans must be positive, got ", fan_in, " and ", fan_out));
  const double limit = std::sqrt(6.0 / static_cast<double>(fan_in + fan_out));
  return random_uniform(dims, -limit, limit, dtype);
}

Tensor glorot_normal(const Dims& dims, std::int64_t fan_in, std::int64_t fan_out, DType dtype) {
  if (fan_in < 0 || fan_out < 0 || fan_in + fan_out == 0)
    throw ArgumentError(
        str("glorot_normal: fans must be positive, got ", fan_in, " and ", fan_out));
  return normal(dims, 2.0 / static_cast<double>(fan_in + fan_out), dtype);
}
Tensor he_normal(const Dims& dims, std::int64_t fan_in, std::int64_t, DType dtype) {
  return normal(dims, over_fan_in("he_normal", 2, fan_in), dtype);
}
Tensor he_uniform(const Dims& dims, std::int64_t fan_in, std::int64_t, DType dtype) {
  return uniform(dims, over_fan_in("he_uniform", 2, fan_in), dtype);
}
Tensor lecun_normal(const Dims& dims, std::int64_t fan_in, std::int64_t, DType dtype) {
  return normal(dims, over_fan_in("lecun_normal", 1, fan_in), dtype);
}
Tensor lecun_uniform(const Dims& dims, std::int64_t fan_in, std::int64_t, DType dtype) {
  return uniform(dims, over_fan_in("lecun_uniform", 1, fan_in), dtype);
}

Tensor orthogonal(const Dims& dims, std::int64_t, std::int64_t, DType dtype) {
  check_matrix("orthogonal", dims, dims.size() >= 2);
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < dims.size(); ++i) rows *= dims[i].size();
  const std::int64_t columns = dims.back().size();
  if (rows * columns == 0) return zeros(dims, dtype);
  const std::int64_t more = std::max(rows, columns), fewer = std::min(rows, columns);
  const Tensor factor = orthogonal_factor(random_normal({more, fewer}, f64), more, fewer);
  return cast(reshape(rows < columns ? transpose(factor, {1, 0}) : factor, dims), dtype);
}

Tensor identity_matrix(const Dims& dims, std::int64_t, std::int64_t, DType dtype) {
  check_matrix("identity_matrix", dims, dims.size() == 2);
  return one_hot(range(dims[0]), dims[1], dtype);
}

namespace detail {

Tensor initial_weight(std::string_view layer, const InitialValues& values, const Dims& dims,
                      std::int64_t fan_in, std::int64_t fan_out, DType dtype) {
  if (!values) return glorot_uniform(dims, fan_in, fan_out, dtype);
  Tensor made = values(dims, fan_in, fan_out, dtype);
  check_defined(layer, made);
  if (made.dims() != dims)
    throw ShapeError(str(layer, ": initial values of a weight with the dims ", dims, " are ",
                         made.type(), "; make them over the dims that the function is given"));
  if (made.dtype() != dtype)
    throw DTypeError(str(layer, ": initial values of a weight of ", dtype, " are ", made.type(),
                         "; make them of the dtype that the function is given"));
  return made;
}

Tensor weight_of_gates(std::string_view cell, const InitialValues& values, const Dim& in,
                       const Dim& gate, std::int64_t gates, DType dtype) {
  const Dim part(gate.name(), gate.size() / gates);
  if (!values) return glorot_uniform({in, gate}, in.size(), part.size(), dtype);
  Tensors parts;
  for (std::int64_t i = 0; i < gates; ++i)
    parts.push_back(initial_weight(cell, values, {in, part}, in.size(), part.size(), dtype));
  return concat(parts, part, gate);
}

void check_parameter_dim(std::string_view layer, std::string_view role, const Dim& dim) {
  if (!dim.is_named())
    throw ArgumentError(str(layer, ": dim ", role, " must have a name, got ", dim,
                            "; give it Dim(\"", role, "\", ", dim, ")"));
  if (!dim.has_size() || dim.is_ragged())
    throw ArgumentError(str(layer, ": dim ", role, " must have one known size, got ", dim));
}

void check_parameter_dtype(std::string_view layer, DType dtype) {
  if (!is_float(dtype)) throw DTypeError(str(layer, ": parameters are f32 or f64, not ", dtype));
}

void check_input(std::string_view layer, std::string_view role, const Tensor& x, const Dim& dim,
                 DType dtype) {
  if (!x.is_defined())
    throw ArgumentError(str(layer, ": ", role, " is an empty Tensor", kEmptyTensorRepair));
  if (find(x.dims(), dim) < 0) {
    const std::string hint = missing_dim_hint(x.type(), dim);
    throw ShapeError(str(layer, ": ", role, ' ', x.type(), " has no dim ", dim,
                         ", which the layer takes",
                         hint.empty() ? "; make the layer with a dim of x" : hint));
  }
  if (x.dtype() != dtype)
    throw DTypeError(str(layer, ": dtypes differ: ", role, ' ', x.type(), ", parameters ", dtype,
                         "; cast ", role, " to ", dtype, ", or make the layer with dtype ",
                         is_float(x.dtype()) ? x.dtype() : f64));
}

void check_state(std::string_view cell, const Tensor& x, const Dim& in, std::string_view role,
                 const Tensor& state, const Dim& hidden, DType dtype) {
  check_input(cell, role, state, hidden, dtype);
  const auto lacking = [](const Tensor& one, const Tensor& other, const Dim& feature) {
    Dims result;
    for (const Dim& dim : other.dims())
      if (!(dim == feature) && !contains(one.dims(), dim)) result.push_back(dim);
    return result;
  };
  const Dims of_x = lacking(x, state, hidden), of_state = lacking(state, x, in);
  if (!of_x.empty() && !of_state.empty())
    throw ShapeError(str(cell, ": dims differ: x ", x.type(), " lacks ", join(of_x), " of ", role,
                         ' ', state.type(), ", which lacks ", join(of_state),
                         "; make the state with initial_state, of the dims of x without ", in));
}

Tensor zero_state(std::string_view cell, Dims dims, const Dim& hidden, DType dtype) {
  dims.push_back(hidden);
  return as_function(str(cell, "::initial_state"), [&] { return zeros(dims, dtype); });
}

}  // namespace detail
}  // namespace reel
