#include "reel/frontend/layers/initial_values.h"

#include <cmath>
#include <string>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/dims/same_name.h"
#include "reel/core/ops.h"

namespace reel {

Tensor glorot_uniform(const Dims& dims, std::int64_t fan_in, std::int64_t fan_out, DType dtype) {
  if (fan_in < 0 || fan_out < 0 || fan_in + fan_out == 0)
    throw ArgumentError(
        str("glorot_uniform: fans must be positive, got ", fan_in, " and ", fan_out));
  const double limit = std::sqrt(6.0 / static_cast<double>(fan_in + fan_out));
  return random_uniform(dims, -limit, limit, dtype);
}

namespace detail {

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
  if (!x.is_defined()) throw ArgumentError(str(layer, ": ", role, " is an empty Tensor"));
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
