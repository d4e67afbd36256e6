// Random integers between tensors, composed of uniform draws.
#include "reel/core/functions/random_bounds.h"

#include <cstdint>

#include "reel/core/base/str.h"
#include "reel/core/ops.h"
#include "reel/core/types/mode.h"

namespace reel {
namespace {

/// Returns a bound as i64, over the dims.
Tensor bound_over(const Dims& dims, const Arg& bound, const char* role) {
  if (bound.is_number()) {
    if (bound.is_floating())
      throw DTypeError(
          str("random_integers: ", role, " is the fraction ", bound.number(), "; give an integer"));
    return scalar(bound.integer(), i64);
  }
  const Tensor& tensor = bound.tensor();
  check_defined("random_integers", tensor);
  if (!is_integer(tensor.dtype()))
    throw DTypeError(
        str("random_integers: ", role, " is ", tensor.type(), "; cast it to i32 or i64"));
  for (const Dim& dim : tensor.dims())
    if (dim.is_named() && !contains(canonical(dims), dim))
      throw ShapeError(str("random_integers: ", role, ' ', tensor.type(), " has the dim ", dim,
                           ", which the dims of the result lack: [", join(dims),
                           "]; give a number, or a bound over dims of the result"));
  return broadcast_to(cast(tensor, i64), dims);
}

}  // namespace

Tensor random_integers(const Dims& dims, const Arg& low, const Arg& high, DType dtype) {
  if (!is_integer(dtype))
    throw DTypeError(str("random_integers: dtype must be i32 or i64, got ", dtype));
  const Tensor first = bound_over(dims, low, "low"),
               count = maximum(bound_over(dims, high, "high") - first, 0);
  // Below count after rounding, too: a draw is at most 1 - 2^-53.
  const Tensor offset = floor(random_uniform(dims, 0, 1, f64) * cast(count, f64));
  return cast(cast(offset, i64) + first, dtype);
}

}  // namespace reel
