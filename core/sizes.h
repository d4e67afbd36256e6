// core/sizes.h — sizes and positions that are computed or narrowed: refused where they do not fit.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "reel/core/tensor_type.h"

namespace reel {

/// The largest length, position and count in tensors of i32.
inline constexpr std::int64_t kLargestI32 = std::numeric_limits<std::int32_t>::max();

/// Returns the number as i32. Throws ShapeError "`op`: `what` is 3000000000, ..." if it does not
/// fit.
std::int32_t checked_i32(std::int64_t number, std::string_view op, std::string_view what);

/// Return a + b and a * b, for an axis of a result. Requires: neither is negative. Throw ShapeError
/// if 64 bits do not hold the result.
std::int64_t add_sizes(std::int64_t a, std::int64_t b, std::string_view op);
std::int64_t multiply_sizes(std::int64_t a, std::int64_t b, std::string_view op);

/// For type rules of ops whose results are positions (i32) along adjacent axes of x, counted
/// together. Throws ShapeError if the last of them does not fit. Sizes that are not known pass.
void check_positions_fit(std::string_view op, const TensorType& x, int axis, int count = 1);

}  // namespace reel
