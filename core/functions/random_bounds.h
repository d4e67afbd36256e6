// core/functions/random_bounds.h — random integers between bounds that differ by entry.
#pragma once

#include "reel/core/base/visibility.h"
#include "reel/core/functions/operands.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// Draws integers from low to high - 1, all equally likely up to (high - low) / 2^53, as
/// random_integers with numbers does. Where high <= low, the result is low.
///
/// low, high: integers, or integer tensors that broadcast to the dims. Requires that high - low is
/// at most 2^53, and that the dtype holds the bounds. dtype: i32 or i64. Throws DTypeError for
/// other dtypes, ShapeError if a bound has a dim that `dims` lacks.
Tensor random_integers(const Dims& dims, const Arg& low, const Arg& high, DType dtype = i32);

}  // namespace reel
REEL_API_END
