// core/ops/kernels/trig_isa.h — sin, cos and arctan on vectors of one instruction set.
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

/// Returns the sine of r + turns π/2, or of its complement, for |r| <= π/4. Source of the
/// coefficients: Moshier, Cephes 2.2, sinf.
template <Batch V>
inline V sine_of_rest(const V& r, const V& turned) {
  constexpr float kSin[] = {-1.6666654611e-1f, 8.3321608736e-3f, -1.9515295891e-4f};
  constexpr float kCos[] = {4.166664568298827e-2f, -1.388731625493765e-3f, 2.443315711809948e-5f};
  const V square = r * r, one(1.0f);
  const V sine = xsimd::fma(r * square, polynomial(square, kSin), r);
  const V cosine = xsimd::fma(square * square, polynomial(square, kCos), one - V(0.5f) * square);
  const V turns = turned - V(4.0f) * xsimd::floor(turned * V(0.25f));
  const auto is_odd = (turns == one) | (turns == V(3.0f));
  const V result = xsimd::select(is_odd, cosine, sine);
  return xsimd::select(turns >= V(2.0f), V(-0.0f) - result, result);
}

#if !defined(__FMA__) && !defined(__aarch64__)
/// A vector of doubles, converted.
typedef float NarrowedFloats __attribute__((vector_size(4 * kLanes<double>)));
#endif

/// Returns sin(x + quarters π/2) for |x| <= kMaxRadians, with an error below two units of the last
/// place.
///
/// The rest of x loses no bit: n, of at most 16 bits, times the first part of π/2 differs from x by
/// a number of 24 bits, and fused products round only the two smaller parts (Cody & Waite, 1980).
/// Without them, it is computed in double.
template <Batch V>
inline V sin_of_floats(const V& x, double quarters) {
#if defined(__FMA__) || defined(__aarch64__)
  const V n = xsimd::nearbyint(x * V(0x1.45f306p-1f));
  const V first = subtract_product(n, V(0x1.921fb6p+0f), x);
  const V second = subtract_product(n, V(-0x1.777a5cp-25f), first);
  return sine_of_rest(subtract_product(n, V(-0x1.ee59dap-50f), second),
                      n + V(static_cast<float>(quarters)));
#else
  alignas(64) float elements[V::size], rests[V::size], turns[V::size];
  x.store_aligned(elements);
  for (int i = 0; i < kLanes<float>; i += kLanes<double>) {
    const Vector<double> wide = widen(elements + i);
    const Vector<double> n = xsimd::nearbyint(wide * Vector<double>(0x1.45f306dc9c883p-1));
    const Vector<double> rest =
        (wide - n * Vector<double>(0x1.921fb544p+0)) - n * Vector<double>(0x1.0b4611a626331p-34);
    const NarrowedFloats r = __builtin_convertvector(rest.data, NarrowedFloats),
                         turned = __builtin_convertvector((n + Vector<double>(quarters)).data,
                                                          NarrowedFloats);
    __builtin_memcpy(rests + i, &r, sizeof(r));
    __builtin_memcpy(turns + i, &turned, sizeof(turned));
  }
  return sine_of_rest(V::load_aligned(rests), V::load_aligned(turns));
#endif
}

template <class T, bool kIsSine>
inline T with_library(T x) {
  if constexpr (kIsSine)
    return static_cast<T>(__builtin_sin(static_cast<double>(x)));
  else
    return static_cast<T>(__builtin_cos(static_cast<double>(x)));
}

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
    sin_of_floats(near, kQuarters).store_aligned(result);
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

/// Returns arctan(x) for 0 <= x <= infinity, and NaN for NaN.
///
/// arctan x = π/2 - arctan 1/x = π/4 + arctan (x - 1)/(x + 1). One quotient serves all lanes: one
/// for each form would divide by zero in lanes of another. Source of the coefficients: Moshier,
/// Cephes 2.8, atan.c and atanf.c.
template <Batch V>
inline V positive_arctan(const V& x) {
  constexpr bool kIsFloat = std::is_same_v<typename V::value_type, float>;
  const V one(1.0);
  const auto is_large = x > V(2.41421356237309504880);  // tan(3π/8)
  const auto is_medium = x > V(kIsFloat ? 0.41421356237309504880 : 0.66);
  const V up = xsimd::select(is_large, V(-1.0), xsimd::select(is_medium, x - one, x));
  const V down = xsimd::select(is_large, x, xsimd::select(is_medium, x + one, one));
  const V r = up / down, square = r * r;
  const auto of_form = [&](double large, double medium) {
    return xsimd::select(is_large, V(large), xsimd::select(is_medium, V(medium), V(0.0)));
  };
  const V angle = of_form(1.57079632679489661923, 0.78539816339744830962);
  if constexpr (kIsFloat) {
    constexpr float kSeries[] = {-3.33329491539e-1f, 1.99777106478e-1f, -1.38776856032e-1f,
                                 8.05374449538e-2f};
    return angle + xsimd::fma(r * square, polynomial(square, kSeries), r);
  } else {
    constexpr double kUp[] = {-6.485021904942025371773e1, -1.228866684490136173410e2,
                              -7.500855792314704667340e1, -1.615753718733365076637e1,
                              -8.750608600031904122785e-1};
    constexpr double kDown[] = {1.945506571482613964425e2, 4.853903996359136964868e2,
                                4.328810604912902668951e2, 1.650270098316988542046e2,
                                2.485846490142306297962e1, 1.0};
    const V curve = square * polynomial(square, kUp) / polynomial(square, kDown);
    // π/2 and π/4 have more digits than a double.
    const V lost = of_form(6.123233995736765886130e-17, 3.061616997868382943065e-17);
    return angle + (xsimd::fma(r, curve, r) + lost);
  }
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
struct Arctan {
  template <Batch V>
  static V of(V x) {
    return xsimd::bitofsign(x) | positive_arctan(xsimd::abs(x));
  }
};

}  // namespace reel::REEL_ISA
