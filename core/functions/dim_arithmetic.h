// core/functions/dim_arithmetic.h — arithmetic on dims: time + 1, time * 2, ceildiv(time, 2), a +
// b, a - b, a * b, a / b.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>

#include "reel/core/base/visibility.h"
#include "reel/core/types/dim.h"

REEL_API_BEGIN
namespace reel {

// For a plain size, the result is the number. For a named dim, it is a dim of the same kind, and
// each of its lengths is computed from the operand's; lengths are at least 0. Its name is the name
// of the (first) operand, as for dims that pad, slice and concat make; it prints as the expression,
// time+1.
//
// Equal expressions give equal dims: time + 1 is the same dim whenever and wherever it is written,
// also in a trace. Also equal are:
//
//   1 + time == time + 1        (time + 1) - 1 == time        time + 0 == time
//   (time * 6) / 2 == time * 3        a + b == b + a              a * b == b * a
//   (a + b) - b == a            (a - b) - c == a - (b + c)  (a * b) / b == a
//   (a / b) / c == a / (b * c)  (a * c) / (b * c) == a / b
//
// Expressions that are equal only in value give different dims: (time - 1) + 1 is not time, because
// an empty entry gets one element; (a / b) * b is not a. A tensor gets such a dim if an op accepts
// a dim for its result: pad(x, time, 0, 1, 0, time + 1).
//
// All throw ArgumentError for an undefined dim. They throw it also if a length does not fit into 32
// bits, or a number or size into 64. Thread-safe. A dim is found again as long as a reference to
// it exists.

/// Returns the dim with the sum of both lengths. Requires that the lengths of one operand run over
/// all dims of the other's lengths; throws ShapeError otherwise.
Dim operator+(const Dim& a, const Dim& b);
/// Returns the dim with the difference of both lengths; lengths below 0 become 0. Requires lengths
/// as a sum does. Throws ArgumentError if a is a plain size and b is not.
Dim operator-(const Dim& a, const Dim& b);
/// Returns the dim with the product of both lengths. Requires lengths as a sum does.
Dim operator*(const Dim& a, const Dim& b);
/// Returns the dim with the quotient of both lengths, which must be a whole number; 0 / 0 is 0.
/// Requires lengths as a sum does. Throws ArgumentError if a length of a is no multiple of b's, in
/// a trace when it runs, and if a is a plain size and b is not. To round, divide by a number:
/// time / 2 rounds; time / Dim(2) does not, and prints as it is written.
Dim operator/(const Dim& a, const Dim& b);
/// Divides and rounds up: the number of groups of n; the last group may be smaller. Throws
/// ArgumentError unless n is positive.
Dim ceildiv(const Dim& dim, std::int64_t n);

// Implement the operators below for numbers.
Dim dim_plus(const Dim& dim, std::int64_t n);
Dim dim_minus(const Dim& dim, std::int64_t n);
Dim dim_times(const Dim& dim, std::int64_t n);
Dim dim_over(const Dim& dim, std::int64_t n);

namespace detail {
[[noreturn]] void refuse_operand(const Dim& dim, std::uint64_t n);
template <std::integral N>
std::int64_t dim_operand(const Dim& dim, N n) {
  if constexpr (std::unsigned_integral<N>)
    if (n > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      refuse_operand(dim, n);
  return static_cast<std::int64_t>(n);
}
}  // namespace detail

template <std::integral N>
Dim operator+(const Dim& dim, N n) {
  return dim_plus(dim, detail::dim_operand(dim, n));
}
template <std::integral N>
Dim operator+(N n, const Dim& dim) {
  return dim + n;
}
/// Subtracts; lengths below 0 become 0.
template <std::integral N>
Dim operator-(const Dim& dim, N n) {
  return dim_minus(dim, detail::dim_operand(dim, n));
}
/// Multiplies. Throws ArgumentError if n is negative.
template <std::integral N>
Dim operator*(const Dim& dim, N n) {
  return dim_times(dim, detail::dim_operand(dim, n));
}
template <std::integral N>
Dim operator*(N n, const Dim& dim) {
  return dim * n;
}
/// Divides and rounds down. Throws ArgumentError unless n is positive.
template <std::integral N>
Dim operator/(const Dim& dim, N n) {
  return dim_over(dim, detail::dim_operand(dim, n));
}

}  // namespace reel
REEL_API_END
