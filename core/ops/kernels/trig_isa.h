// core/ops/kernels/trig_isa.h — sin and cos on vectors of one instruction set.
//
// For pointwise_isa.cpp, like pointwise_functors.h. xsimd 8.1 has both, but calls functions that
// all instruction sets would share (the reason is in cmake/CheckIsaSymbols.cmake).
#pragma once

#include <type_traits>

#include "reel/core/ops/kernels/gauss_isa.h"
#include "reel/core/ops/kernels/vector_isa.h"

namespace reel::REEL_ISA {

/// Largest |x| that is computed in vectors. Larger ones, and NaN, are computed by the standard
/// library, one element at a time.
inline constexpr double kMaxRadians = 1e5;

/// Returns sin(x + quarters π/2) for |x| <= kMaxRadians.
///
/// x - n π/2 for the nearest n. π/2 is split into three parts, the first two of 33 bits, so that n
/// times them is exact (Cody & Waite, 1980). Then Chebyshev series in r², for |r| <= π/4.
inline Vector<double> sin_in_quarters(const Vector<double>& x, double quarters) {
  using V = Vector<double>;
  constexpr double kSin[] = {-0.16666666666666664, 0.008333333333330828,   -0.00019841269836576988,
                             2.755731600874652e-6, -2.5051112378038594e-8, 1.5916732964827757e-10};
  constexpr double kCos[] = {0.041666666666666665,  -0.0013888888888887322,
                             2.4801587298652003e-5, -2.7557317213006247e-7,
                             2.087613408272447e-9,  -1.1381758418038709e-11};
  const V n = xsimd::nearbyint(x * V(0x1.45f306dc9c883p-1));
  // The second difference is rounded; its rounding error is added back with the third part.
  const V a = x - n * V(0x1.921fb544p+0), b = n * V(0x1.0b4611a6p-34), difference = a - b;
  const V taken = a - difference, lost = (a - (difference + taken)) + (taken - b);
  const V r = difference + (lost - n * V(0x1.3198a2e037073p-69));

  const V square = r * r, half(0.5), one(1.0);
  const V sine = xsimd::fma(r * square, polynomial(square, kSin), r);
  const V most = one - half * square;
  const V cosine =
      most + (((one - most) - half * square) + square * square * polynomial(square, kCos));

  const V turned = n + V(quarters), turns = turned - V(4.0) * xsimd::floor(turned * V(0.25));
  const auto is_odd = (turns == one) | (turns == V(3.0));
  const V result = xsimd::select(is_odd, cosine, sine);
  return xsimd::select(turns >= V(2.0), V(-0.0) - result, result);
}

template <class T, bool kIsSine>
inline T with_library(T x) {
  if constexpr (kIsSine)
    return static_cast<T>(__builtin_sin(static_cast<double>(x)));
  else
    return static_cast<T>(__builtin_cos(static_cast<double>(x)));
}

/// sin or cos of floats is computed in double, which makes it exact to the last bit except for
/// rounding.
template <bool kIsSine, Batch V>
inline V sine_or_cosine(const V& x) {
  using T = typename V::value_type;
  constexpr double kQuarters = kIsSine ? 0 : 1;
  alignas(64) T result[V::size];
  const auto is_near = xsimd::abs(x) <= V(kMaxRadians);
  const bool are_near = xsimd::all(is_near);
  const V near = are_near ? x : xsimd::select(is_near, x, V(0.0));
  if constexpr (std::is_same_v<T, double>) {
    sin_in_quarters(near, kQuarters).store_aligned(result);
  } else {
    typedef float Floats __attribute__((vector_size(4 * kLanes<double>)));
    alignas(64) T elements[V::size];
    near.store_aligned(elements);
    for (int i = 0; i < kLanes<float>; i += kLanes<double>) {
      const Floats values =
          __builtin_convertvector(sin_in_quarters(widen(elements + i), kQuarters).data, Floats);
      __builtin_memcpy(result + i, &values, sizeof(values));
    }
  }
  if (!are_near) {
    alignas(64) T elements[V::size];
    x.store_aligned(elements);
    for (std::size_t i = 0; i < V::size; ++i)
      if (!(__builtin_fabs(static_cast<double>(elements[i])) <= kMaxRadians))
        result[i] = with_library<T, kIsSine>(elements[i]);
  }
  return V::load_aligned(result);
}

struct Sin {
  template <Batch V>
  static V of(V x) {
    return xsimd::select(x == V(0.0), x, sine_or_cosine<true>(x));  // -0 stays
  }
};
struct Cos {
  template <Batch V>
  static V of(V x) {
    return sine_or_cosine<false>(x);
  }
};

}  // namespace reel::REEL_ISA
