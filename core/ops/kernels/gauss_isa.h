// core/ops/kernels/gauss_isa.h — the error function and gelu, on vectors of one instruction set.
//
// For pointwise_isa.cpp, like pointwise_functors.h. The erf of xsimd 8.1 is not used in double: it
// is wrong in the sixth last bit and NaN at the largest numbers.
#pragma once

#include <type_traits>

#include "reel/core/ops/kernels/pointwise_functors.h"

namespace reel::REEL_ISA {

/// c[0] + c[1] x + ... + c[N-1] x^(N-1).
template <Batch V, class T, int kCount>
inline V polynomial(const V& x, const T (&c)[kCount]) {
  V result(c[kCount - 1]);
#pragma GCC unroll 24
  for (int i = kCount - 2; i >= 0; --i) result = xsimd::fma(result, x, V(c[i]));
  return result;
}

/// exp(x²) erfc(x) for 0 <= x < ∞.
///
/// (1 + 2x) exp(x²) erfc(x) is smooth in t = (x - k) / (x + k), and a short Chebyshev series there.
/// Source: Shepherd & Laframboise, Mathematics of Computation 36 (1981). Here k = 3; computed with
/// 40 digits and written in powers of t. The error is below 2^-26 in float, 2^-53 in double.
template <Batch V>
inline V scaled_erfc(const V& x) {
  constexpr float kFloat[] = {1.25300806f,    -0.135621069f,    -0.0475621569f,  0.129644114f,
                              -0.119275275f,  0.0683165678f,    -0.0237635764f,  0.00249911687f,
                              0.00187507912f, -0.000726453679f, -9.25451669e-5f, 7.73102422e-5f};
  constexpr double kDouble[] = {
      1.2530080582697295,      -0.13562110612458116,    -0.047562294353420379,
      0.12964515870275939,     -0.11927366341676002,    0.068308027344009904,
      -0.023770514891530075,   0.0025293918156939695,   0.0018886900977441495,
      -0.00077983226965433065, -0.00010515831297813128, 0.00012509934245837291,
      4.9441243422236599e-6,   -2.0100542268525611e-5,  -7.1878838344042667e-7,
      3.4723709449771682e-6,   3.3669790806407596e-7,   -6.1660114603987259e-7,
      -1.2054142286489379e-7,  1.0183620603842737e-7,   2.7843881265502221e-8,
      -1.3312919661038688e-8,  -3.1813541434969273e-9,  9.8625335103455876e-10};
  const V t = (x - V(3.0)) / (x + V(3.0)), scale = V(1.0) + x + x;
  if constexpr (std::is_same_v<typename V::value_type, float>)
    return polynomial(t, kFloat) / scale;
  else
    return polynomial(t, kDouble) / scale;
}

struct Erf {
  template <Batch V>
  static V of(V x) {
    if constexpr (std::is_same_v<typename V::value_type, float>) {
      return xsimd::erf(within(x, 10));  // where erf is 1
    } else {
      // Up to 1: the Chebyshev series of erf(x)/x in x². Beyond it: 1 - erfc(x).
      constexpr double kSmall[] = {
          1.1283791670955126,     -0.37612638903183544,   0.1128379167094513,
          -0.026866170643256994,  0.0052239776072699453,  -0.00085483259825432251,
          0.00012055295112667001, -1.4924740785377575e-5, 1.6447471190594618e-6,
          -1.6208829856810201e-7, 1.3721520406351094e-8,  -7.7985438505499469e-10};
      const V size = xsimd::abs(x), one(1.0), most(6.0);  // erf(6) is 1
      const auto is_small = size <= one;
      const V near = within(x, 1);
      const V small = near * polynomial(near * near, kSmall);
      if (xsimd::all(is_small)) return small;
      const V bounded = xsimd::select(size > most, most, size);
      const V large = one - xsimd::exp(V(0.0) - bounded * bounded) * scaled_erfc(bounded);
      return xsimd::select(is_small, small, xsimd::select(x < V(0.0), V(0.0) - large, large));
    }
  }
};

/// Returns x² - square, the rounding error of square; 0 without FMA instructions. xsimd 8.1 has no
/// such function for AVX-512.
template <Batch V>
inline V lost_of_square([[maybe_unused]] const V& x, [[maybe_unused]] const V& square) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<typename V::value_type, float>)
    return _mm512_fmsub_ps(x, x, square);
  else
    return _mm512_fmsub_pd(x, x, square);
#else
  if constexpr (kHasFma)
    return xsimd::fms(x, x, square);
  else
    return V(0.0);
#endif
}

/// Φ(x), the part of a standard normal distribution below x, and its density φ(x).
template <Batch V>
struct Normal {
  V below, density;

  explicit Normal(const V& x) {
    const V size = xsimd::abs(x), square = size * size, half(0.5);
    // Corrects exp's relative error from the rounding of its argument.
    const V bell = xsimd::exp(square * V(-0.5)) * (V(1.0) - half * lost_of_square(size, square));
    const V tail = half * bell * scaled_erfc(size * V(0.70710678118654752440));
    below = xsimd::select(x < V(0.0), tail, V(1.0) - tail);
    density = bell * V(0.39894228040143267794);
  }
};

/// Clamps elements with a tail of 0, so that infinities make no NaN.
template <Batch V>
inline V bounded(const V& x) {
  const V most(40.0), least(-40.0);
  return xsimd::select(x > most, most, xsimd::select(x < least, least, x));
}

/// x Φ(x).
struct Gelu {
  template <Batch V>
  static V of(V x) {
    const V near = bounded(x);
    return xsimd::select(x > near, x, near * Normal<V>(near).below);
  }
};
/// The gradient of gelu at x, times g: (Φ(x) + x φ(x)) g.
struct GeluGrad {
  template <Batch V>
  static V of(V x, V g) {
    const V near = bounded(x);
    const Normal<V> normal(near);
    return xsimd::fma(near, normal.density, normal.below) * g;
  }
};

}  // namespace reel::REEL_ISA
