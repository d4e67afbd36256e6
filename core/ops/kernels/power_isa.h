// core/ops/kernels/power_isa.h — Pow, powers on vectors of one instruction set.
//
// For pointwise_isa.cpp, like pointwise_functors.h.
#pragma once

#include <bit>

#include "reel/core/ops/kernels/pointwise_functors.h"

namespace reel::REEL_ISA {

/// Returns the lanes, among those asked for, in which x^n might overflow or vanish.
template <Batch V, class Mask>
Mask leaves_range(const V& x, const V& n, const Mask& asked) {
  using T = typename V::value_type;
  constexpr bool kIsFloat = std::same_as<T, float>;
  constexpr int kMaxExponent = std::numeric_limits<T>::max_exponent - 1;
  const V most(kIsFloat ? 88.72 : 709.78), one(1.0);
  // By exponents first: between 2^e and 2^(e + 1).
  const auto bits = std::bit_cast<xsimd::as_integer_t<V>>(x);
  const V e = xsimd::to_float(bits >> (std::numeric_limits<T>::digits - 1)) - V(kMaxExponent);
  const auto is_far = asked & ((xsimd::abs(e) + one) * n >= V(kMaxExponent)) & (x > V(0.0)) &
                      (x < V(std::numeric_limits<T>::infinity()));
  if (!xsimd::any(is_far)) return is_far;
  return is_far & (xsimd::abs(Log::of(xsimd::select(is_far, x, one))) * n > most);
}
struct Pow {
  // Small whole exponents use repeated squaring, which is exact if the result is. Others use exp(b
  // log |a|); its error in ulp is about the argument of exp. Negative exponents use exp too if
  // 1 / a^|b| would divide by a power that overflows or vanishes. Special cases
  // follow IEEE 754: 0^0 and 1^NaN are 1, 0 to a negative exponent is infinite, and so on.
  template <Batch V>
  static V of(V a, V b) {
    constexpr int kBits = 6;
    const V n = xsimd::abs(b), one(1.0), zero(0.0);
    const V infinity(std::numeric_limits<typename V::value_type>::infinity());
    auto is_small = (n < V(1 << kBits)) & (xsimd::trunc(n) == n);
    const auto is_turned = is_small & (b < zero) & (n > one);
    if (xsimd::any(is_turned)) is_small = is_small & !leaves_range(xsimd::abs(a), n, is_turned);
    V small = one;
    if (xsimd::any(is_small)) {
      V factor = a, rest = xsimd::select(is_small, n, zero);
      for (int bit = 0; bit < kBits && xsimd::any(rest > zero); ++bit) {
        const V half = xsimd::floor(rest * V(0.5));
        small = small * xsimd::select(half + half < rest, factor, one);
        factor = xsimd::select(half > zero, factor, one);
        factor = factor * factor;
        rest = half;
      }
      small = xsimd::select(b < zero, one / xsimd::select(b < zero, small, one), small);
      if (xsimd::all(is_small)) return small;
    }
    const V size = xsimd::abs(a);
    // Known results skip the logarithm, which would raise exceptions.
    const auto is_zero = (size == zero) & (b > zero), is_known = is_small | is_zero | (size == one);
    const bool any_known = xsimd::any(is_known);
    // Larger exponents saturate exp as well, and their product with a logarithm would overflow.
    const V bounded = within(b, std::same_as<typename V::value_type, float> ? 1e30 : 1e300);
    V other =
        xsimd::exp(within_exp((any_known ? xsimd::select(is_known, zero, bounded) : bounded) *
                              Log::of(any_known ? xsimd::select(is_known, one, size) : size)));
    if (any_known) other = xsimd::select(is_zero, zero, other);
    const V half = b * V(0.5);
    const auto is_whole = xsimd::trunc(b) == b,
               is_odd = is_whole & (xsimd::trunc(half) < xsimd::ceil(half));
    const V negative = xsimd::select(is_odd, zero - other, other);
    const V nan(std::numeric_limits<typename V::value_type>::quiet_NaN());
    other =
        xsimd::select(a < zero, xsimd::select(is_whole | (size == infinity), negative, nan), other);
    other = xsimd::select((a == one) | ((size == one) & (n == infinity)), one, other);
    return xsimd::select(is_small, small, other);
  }
  // Negative exponents return the truncated quotient 1 / a^|b|; 0 if that would divide by zero.
  template <Integer T>
  static T of(T a, T b) {
    if (b < 0) return a == 1 ? T{1} : a == -1 ? static_cast<T>(b % 2 ? -1 : 1) : T{0};
    T result = 1;
    for (; b; b >>= 1, a = product(a, a))
      if (b & 1) result = product(result, a);
    return result;
  }
};

}  // namespace reel::REEL_ISA
