// core/dim_arithmetic.h — dims made from dims: time + 1, time * 2, ceildiv(time, 2), a + b.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>

#include "reel/core/dim.h"

namespace reel {

// Of a plain size, the number. Of a named dim, a dim of the same kind, each of whose lengths is
// computed from the operand's; none becomes negative. Its name is that of the (first) operand, as
// of the dims that pad, slice and concat make; it prints as the expression, time+1.
//
// Equal expressions give equal dims: time + 1 is the same dim whenever and wherever it is written,
// in a trace as well, and 1 + time == time + 1, (time + 1) - 1 == time, time + 0 == time,
// (time * 6) / 2 == time * 3, a + b == b + a. What is equal in value only is another dim:
// (time - 1) + 1 is not time, because an empty entry gets one element. A tensor gets such a dim
// where an op takes a dim for its result: pad(x, time, 0, 1, 0, time + 1).
//
// All throw ArgumentError for an undefined dim, and where a length would not fit into 32 bits or a
// number or size into 64. Any
// thread may call them at any time. A dim is found again as long as somebody holds it.

/// Lengths, one after the other. Those of one operand run over all dims that the other's run over;
/// ShapeError otherwise.
Dim operator+(const Dim& a, const Dim& b);
/// Rounded up: how many groups of n there are, the last of which may be smaller. ArgumentError
/// unless n is positive.
Dim ceildiv(const Dim& dim, std::int64_t n);

// What the operators below do with a number.
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
/// No length becomes negative.
template <std::integral N>
Dim operator-(const Dim& dim, N n) {
  return dim_minus(dim, detail::dim_operand(dim, n));
}
/// ArgumentError when n is negative.
template <std::integral N>
Dim operator*(const Dim& dim, N n) {
  return dim_times(dim, detail::dim_operand(dim, n));
}
template <std::integral N>
Dim operator*(N n, const Dim& dim) {
  return dim * n;
}
/// Rounded down. ArgumentError unless n is positive.
template <std::integral N>
Dim operator/(const Dim& dim, N n) {
  return dim_over(dim, detail::dim_operand(dim, n));
}

}  // namespace reel
