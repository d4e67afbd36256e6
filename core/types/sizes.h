// core/types/sizes.h — checked arithmetic on sizes, and checked narrowing of positions.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "reel/core/types/tensor_type.h"

namespace reel {

/// The largest length, position and count in tensors of i32.
inline constexpr std::int64_t kLargestI32 = std::numeric_limits<std::int32_t>::max();

/// Returns the number as i32. Throws ShapeError "`op`: `what` is 3000000000, ..." if it does not
/// fit.
std::int32_t checked_i32(std::int64_t number, std::string_view op, std::string_view what);

/// Return a + b and a * b, for an axis of a result. Requires: neither is negative. Throw ShapeError
/// if the result does not fit into 64 bits.
std::int64_t add_sizes(std::int64_t a, std::int64_t b, std::string_view op);
std::int64_t multiply_sizes(std::int64_t a, std::int64_t b, std::string_view op);

/// Checks that positions (i32) along `count` adjacent axes of x, counted together, fit. For type
/// rules. Throws ShapeError if the last one does not fit. Accepts unknown sizes.
void check_positions_fit(std::string_view op, const TensorType& x, int axis, int count = 1);

}  // namespace reel
