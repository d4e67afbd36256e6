// core/ops/kernels/sigmoid_isa.h — tanh and the logistic function, on vectors of one instruction
// set.
//
// For pointwise_isa.cpp, like pointwise_functors.h. In float, the dtype of most recurrent cells,
// without branches and with one division each. xsimd 8.1's tanh evaluates both branches if a vector
// has small and large elements, and its exp checks for infinities that cannot occur here.
#pragma once

#include <type_traits>

#include "reel/core/ops/kernels/gauss_isa.h"

namespace reel::REEL_ISA {

/// Returns x 2^n for whole -127 < n <= 128. Without AVX-512, returns infinity for n = 128, even if
/// the result would be finite. Raises no floating-point exception.
template <Batch V>
inline V times_power_of_two(const V& x, const V& n) {
#if defined(__AVX512F__)
  return _mm512_scalef_round_ps(x, n, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#else
  const auto exponent = xsimd::to_int(n) + decltype(xsimd::to_int(n))(127);
  return x * xsimd::bitwise_cast<V>(exponent << 23);
#endif
}

/// exp(x) = (1 + rest) 2^n, for floats with -87 < x < 89; |rest| < 0.42, exact to the last bit.
///
/// x - n ln 2 for the nearest n. ln 2 is split into two parts, the first of ten bits, so that n
/// times it is exact (Cody & Waite, 1980). Then Taylor's series; its next term is below 2^-27 for
/// |r| <= ln 2 / 2.
template <Batch V>
struct Power {
  V rest, n;

  explicit Power(const V& x) : n(xsimd::nearbyint(x * V(1.44269504f))) {
    constexpr float kSeries[] = {1 / 2.f, 1 / 6.f, 1 / 24.f, 1 / 120.f, 1 / 720.f, 1 / 5040.f};
    const V r = xsimd::fma(n, V(2.12194440e-4f), xsimd::fma(n, V(-0.693359375f), x));
    rest = xsimd::fma(r * r, polynomial(r, kSeries), r);
  }
};

/// If the operands are not ordered, these instructions return the second: NaN stays.
template <Batch V>
inline V at_most(const V& x, float most) {
  return xsimd::min(V(most), x);
}
template <Batch V>
inline V at_least(const V& x, float least) {
  return xsimd::max(V(least), x);
}

/// e / (e + 2) for e = exp(2|x|) - 1, which loses no bits near 0.
struct Tanh {
  template <Batch V>
  static V of(V x) {
    if constexpr (std::is_same_v<typename V::value_type, float>) {
      const V size = at_most(xsimd::abs(x), 10.f);  // where tanh is 1
      const Power<V> power(size + size);
      const V whole = times_power_of_two(V(1.0f), power.n);
      const V e = xsimd::fma(whole, power.rest, whole - V(1.0f));
      return xsimd::bitofsign(x) | (e / (e + V(2.0f)));
    } else {
      return xsimd::tanh(within(x, 40));  // where tanh is 1
    }
  }
};

/// 1 / (1 + exp(-x)).
struct Sigmoid {
  template <Batch V>
  static V of(V x) {
    if constexpr (std::is_same_v<typename V::value_type, float>) {
      const V size = at_least(at_most(V(0.0f) - x, 89.f), -40.f);  // where it is 0, and 1
      const Power<V> power(size);
      return V(1.0f) / (V(1.0f) + times_power_of_two(V(1.0f) + power.rest, power.n));
    } else {
      return V(1.0) /
             (V(1.0) + xsimd::exp(within_exp(V(0.0) - x)));  // saturates: exp returns inf or 0
    }
  }
};

}  // namespace reel::REEL_ISA
