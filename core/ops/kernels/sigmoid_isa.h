// core/ops/kernels/sigmoid_isa.h — tanh and the logistic function, on vectors of one instruction
// set.
//
// For pointwise_isa.cpp, like pointwise_functors.h. In float, the dtype of most recurrent cells,
// without branches and with one division each. xsimd 8.1's tanh evaluates both branches if a vector
// has small and large elements, and its exp checks for infinities that cannot occur here.
#pragma once

#include <bit>
#include <type_traits>
#include <utility>

#include "reel/core/ops/kernels/gauss_isa.h"

namespace reel::REEL_ISA {

/// exp(x) = (1 + rest) 2^n, for floats with -87 < x < 89; |rest| < 0.42.
///
/// x - n ln 2 for the nearest n. ln 2 is split into two parts, the first of ten bits, so that n
/// times it is exact (Cody & Waite, 1980). Then r + r² P(r), with the polynomial P that has the
/// least error times |r| + 0.03 for |r| <= ln 2 / 2: 1.5e-8.
template <Batch V>
class Power {
 public:
  V rest;

  explicit Power(const V& x) {
    constexpr float kSeries[] = {0.5f, 0.166665465f, 0.0416662954f, 0.00836624019f, 0.00139458058f};
    constexpr float kPerLn2 = 1.44269504f;
#if defined(__AVX512F__)
    n_ = xsimd::nearbyint(x * V(kPerLn2));
    const V n = n_;
#else
    // The last place of the sum is 1, so its low bits are the integer n + 127.
    const V shift(12582912.0f + 127.0f);
    const V shifted = xsimd::fma(x, V(kPerLn2), shift);
    const V n = shifted - shift;
    scale_ = std::bit_cast<V>(std::bit_cast<Integers>(shifted) << 23);
#endif
    const V r = xsimd::fma(n, V(2.12194440e-4f), xsimd::fma(n, V(-0.693359375f), x));
    rest = xsimd::fma(r * r, polynomial(r, kSeries), r);
  }

  // Without AVX-512, 2^n is infinity for n = 128, even if the result of times() would be finite.
  // Neither raises a floating-point exception.

#if defined(__AVX512F__)
  V scale() const { return times(V(1.0f)); }
  V times(const V& y) const {
    return _mm512_scalef_round_ps(y, n_, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }

 private:
  V n_;
#else
  V scale() const { return scale_; }
  V times(const V& y) const { return y * scale_; }

 private:
  using Integers = decltype(xsimd::to_int(std::declval<V>()));
  V scale_;
#endif
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
      const V whole = power.scale();
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
      const V size = at_least(at_most(x ^ V(-0.0f), 89.f), -40.f);  // where it is 0, and 1
      const Power<V> power(size);
      return V(1.0f) / (V(1.0f) + power.times(V(1.0f) + power.rest));
    } else {
      return V(1.0) /
             (V(1.0) + xsimd::exp(within_exp(V(0.0) - x)));  // saturates: exp returns inf or 0
    }
  }
};

}  // namespace reel::REEL_ISA
