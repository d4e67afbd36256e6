// core/types/sizes.h — checks of axes and sizes, and checked narrowing of positions.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "reel/core/base/visibility.h"
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

[[noreturn]] REEL_API void refuse_axis(const TensorType& type, int axis);
/// Throws ShapeError unless the type has an axis of this position. Type rules check the axes of
/// their attributes with it, or with dim_at(): kernels trust them.
inline void check_axis(const TensorType& type, int axis) {
  if (axis < 0 || axis >= type.rank()) [[unlikely]]
    refuse_axis(type, axis);
}
inline void check_axes(const TensorType& type, const std::vector<int>& axes) {
  for (int axis : axes) check_axis(type, axis);
}
/// Checks `count` axes from `first` on.
inline void check_axes(const TensorType& type, int first, int count) {
  check_axis(type, first);
  check_axis(type, first + count - 1);
}
/// How closely an operand must match the expected type: in sizes, or in named dims too. Unknown
/// sizes fit, and symbols of a trace fit other dims of their size.
enum class Fits : std::uint8_t { sizes, dims };
/// Throws ShapeError unless an operand has the dtype, the rank, and sizes or dims of `expected`.
/// For type rules of ops that other functions of the library give fitting operands. Example:
/// "scan_lag: the first row is f32[3], but should be f32[2]".
void check_operand(std::string_view op, std::string_view operand, const TensorType& type,
                   const TensorType& expected, Fits how = Fits::sizes);

/// Checks that positions (i32) along `count` adjacent axes of x, counted together, fit. For type
/// rules. Throws ShapeError if the last one does not fit. Accepts unknown sizes.
void check_positions_fit(std::string_view op, const TensorType& x, int axis, int count = 1);

}  // namespace reel
