// core/ops/kernels/reduce_isa.h — combines elements along runs and down columns, on vectors of one
// instruction set.
//
// For reductions_isa.cpp and softmax_isa.cpp.
#pragma once

#include <utility>

#include "reel/core/ops/kernels/vector_isa.h"

namespace reel::REEL_ISA {
namespace {

constexpr std::int64_t kColumns =
    512;  // accumulators of these columns stay in the first-level cache

template <class T>
constexpr T lowest() {
  if constexpr (sizeof(T) == 4)
    return std::is_same_v<T, float> ? -__builtin_inff() : T(-2147483647 - 1);
  return std::is_same_v<T, double> ? -__builtin_inf() : T(-9223372036854775807LL - 1);
}
template <class T>
constexpr T highest() {
  if constexpr (std::is_floating_point_v<T>) return -lowest<T>();
  return T(-1) - lowest<T>();
}

// ---- Combining elements -------------------------------------------------------------------------

/// Floats are added in double: a million of them keep an error of a few 1e-8, in any order.
template <class T>
struct SumFloats {
  using Element = T;
  using Sum = double;
  using Sums = Vector<double>;
  static constexpr int kWidth = kLanes<double>;
  static constexpr Sum kNone = 0;
  static Sums load(const T* x) { return widen(x); }
  static Sum of(Sum a, Sum b) { return a + b; }
  static Sums of(const Sums& a, const Sums& b) { return a + b; }
};

template <class T>
struct ProductFloats {
  using Element = T;
  using Sum = double;
  using Sums = Vector<double>;
  static constexpr int kWidth = kLanes<double>;
  static constexpr Sum kNone = 1;
  static Sums load(const T* x) { return widen(x); }
  static Sum of(Sum a, Sum b) { return a * b; }
  static Sums of(const Sums& a, const Sums& b) { return a * b; }
};

/// NaN is the result, as in NumPy.
template <class T>
struct MaxFloats {
  using Element = T;
  using Sum = T;
  using Sums = Vector<T>;
  static constexpr int kWidth = kLanes<T>;
  static constexpr Sum kNone = lowest<T>();
  static Sums load(const T* x) { return REEL_ISA::load(x); }
  static Sum of(Sum a, Sum b) { return b > a || b != b ? b : a; }
  static Sums of(const Sums& a, const Sums& b) {
    return xsimd::select((b > a) | xsimd::isnan(b), b, a);
  }
  static Sums of_numbers(const Sums& a, const Sums& b) { return larger(a, b); }
};

template <class T>
struct MinFloats {
  using Element = T;
  using Sum = T;
  using Sums = Vector<T>;
  static constexpr int kWidth = kLanes<T>;
  static constexpr Sum kNone = highest<T>();
  static Sums load(const T* x) { return REEL_ISA::load(x); }
  static Sum of(Sum a, Sum b) { return b < a || b != b ? b : a; }
  static Sums of(const Sums& a, const Sums& b) {
    return xsimd::select((b < a) | xsimd::isnan(b), b, a);
  }
  static Sums of_numbers(const Sums& a, const Sums& b) { return smaller(a, b); }
};

// Integers, which wrap around, and booleans: the compiler vectorises these.
template <class T, class U>
struct SumIntegers {
  using Element = T;
  using Sum = U;
  static constexpr Sum kNone = 0;
  static Sum of(Sum a, Sum b) { return a + b; }
};
template <class T, class U>
struct ProductIntegers {
  using Element = T;
  using Sum = U;
  static constexpr Sum kNone = 1;
  static Sum of(Sum a, Sum b) { return a * b; }
};
template <class T>
struct MaxIntegers {
  using Element = T;
  using Sum = T;
  static constexpr Sum kNone = lowest<T>();
  static Sum of(Sum a, Sum b) { return b > a ? b : a; }
};
template <class T>
struct MinIntegers {
  using Element = T;
  using Sum = T;
  static constexpr Sum kNone = highest<T>();
  static Sum of(Sum a, Sum b) { return b < a ? b : a; }
};
struct Any {
  using Element = std::uint8_t;
  using Sum = std::uint8_t;
  static constexpr Sum kNone = 0;
  static Sum of(Sum a, Sum b) { return a | b; }
};
struct All {
  using Element = std::uint8_t;
  using Sum = std::uint8_t;
  static constexpr Sum kNone = 1;
  static Sum of(Sum a, Sum b) { return a & b; }
};

template <class P>
concept HasVectors = requires {
  P::kWidth;
};
/// True if P has a faster function for vectors without NaN, with the bits of P::of.
template <class P>
concept HasNumbers = requires(typename P::Sums x) {
  P::of_numbers(x, x);
};

/// Returns x rotated by kBy lanes: lane i of the result is lane (i + kBy) mod lanes of x.
template <int kBy, class V, std::size_t... kLane>
[[gnu::always_inline]] inline V rotated(const V& x, std::index_sequence<kLane...>) {
  return __builtin_shufflevector(x.data, x.data, ((kLane + kBy) % sizeof...(kLane))...);
}
/// Combines all lanes. Returns the result in each lane.
template <class P, int kBy = P::kWidth / 2>
[[gnu::always_inline]] inline typename P::Sums in_all_lanes(const typename P::Sums& x) {
  const auto half = P::of(x, rotated<kBy>(x, std::make_index_sequence<P::kWidth>()));
  if constexpr (kBy > 1)
    return in_all_lanes<P, kBy / 2>(half);
  else
    return half;
}

// ---- Walking ------------------------------------------------------------------------------------

/// Combines the whole vectors of a contiguous run lane by lane. Requires n >= 2 kWidth.
template <class P>
[[gnu::always_inline]] inline typename P::Sums reduce_to_lanes(const typename P::Element* x,
                                                               std::int64_t n) {
  using Sums = typename P::Sums;
  constexpr int kWidth = P::kWidth;
  Sums sums[4] = {Sums(P::kNone), Sums(P::kNone), Sums(P::kNone), Sums(P::kNone)};
  std::int64_t i = 0;
  if constexpr (HasNumbers<P>) {
    for (; i + 4 * kWidth <= n; i += 4 * kWidth) {
      const Sums a = P::load(x + i), b = P::load(x + i + kWidth), c = P::load(x + i + 2 * kWidth),
                 d = P::load(x + i + 3 * kWidth);
      if (has_nan(a, b, c, d)) break;  // the sums would be NaN from here on
      sums[0] = P::of_numbers(sums[0], a);
      sums[1] = P::of_numbers(sums[1], b);
      sums[2] = P::of_numbers(sums[2], c);
      sums[3] = P::of_numbers(sums[3], d);
    }
  }
  for (; i + 4 * kWidth <= n; i += 4 * kWidth)
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) sums[k] = P::of(sums[k], P::load(x + i + k * kWidth));
  for (; i + kWidth <= n; i += kWidth) sums[0] = P::of(sums[0], P::load(x + i));
  return P::of(P::of(sums[0], sums[1]), P::of(sums[2], sums[3]));
}

/// Reduces a contiguous run.
template <class P>
__attribute__((optimize("O3"))) typename P::Sum reduce_run(const typename P::Element* x,
                                                           std::int64_t n) {
  typename P::Sum result = P::kNone;
  std::int64_t i = 0;
  if constexpr (HasVectors<P>) {
    constexpr int kWidth = P::kWidth;
    if (n >= 2 * kWidth) {
      alignas(64) typename P::Sum lanes[kWidth];
      reduce_to_lanes<P>(x, n).store_aligned(lanes);
      for (int k = 0; k < kWidth; ++k) result = P::of(result, lanes[k]);
      i = n / kWidth * kWidth;
    }
  }
  for (; i < n; ++i) result = P::of(result, static_cast<typename P::Sum>(x[i]));
  return result;
}

/// Returns a0 b0 a1 b1 …: of the first halves of a and b, or of the second.
template <bool kIsUpper, class V, std::size_t... kLane>
[[gnu::always_inline]] inline V interleaved(const V& a, const V& b, std::index_sequence<kLane...>) {
  constexpr std::size_t kLanes = sizeof...(kLane), kFirst = kIsUpper ? kLanes / 2 : 0;
  return __builtin_shufflevector(a.data, b.data, (kLane % 2 * kLanes + kFirst + kLane / 2)...);
}

/// Reduces kWidth contiguous runs of n elements, one behind the other, to the bits of reduce_run().
/// Requires n >= 2 kWidth. The lanes of all runs are combined side by side: one by one, as
/// reduce_run() does, they take as long as 8 vectors of a run.
template <class P>
[[gnu::always_inline]] inline void reduce_runs(const typename P::Element* x, std::int64_t n,
                                               typename P::Sum* results) {
  using Sums = typename P::Sums;
  constexpr int kWidth = P::kWidth;
  const Sums none(P::kNone);
  Sums rows[kWidth], turned[kWidth];
  if (n == 4 * kWidth) {
#pragma GCC unroll 16
    for (int r = 0; r < kWidth; ++r) {
      const typename P::Element* const run = x + r * n;
      rows[r] = P::of(
          P::of(P::of(none, P::load(run)), P::of(none, P::load(run + kWidth))),
          P::of(P::of(none, P::load(run + 2 * kWidth)), P::of(none, P::load(run + 3 * kWidth))));
    }
  } else if (n < 4 * kWidth) {
#pragma GCC unroll 16
    for (int r = 0; r < kWidth; ++r) {
      const typename P::Element* const run = x + r * n;
      rows[r] = P::of(P::of(none, P::load(run)), P::load(run + kWidth));
      if (n >= 3 * kWidth) rows[r] = P::of(rows[r], P::load(run + 2 * kWidth));
      rows[r] = P::of(P::of(rows[r], none), P::of(none, none));
    }
  } else {
    for (int r = 0; r < kWidth; ++r) rows[r] = reduce_to_lanes<P>(x + r * n, n);
  }
  // Each round of a perfect shuffle turns the matrix of rows and lanes a bit further.
#pragma GCC unroll 16
  for (int round = 1; round < kWidth; round *= 2) {
#pragma GCC unroll 16
    for (int i = 0; i < kWidth / 2; ++i) {
      constexpr auto kLanesOfP = std::make_index_sequence<kWidth>();
      turned[2 * i] = interleaved<false>(rows[i], rows[i + kWidth / 2], kLanesOfP);
      turned[2 * i + 1] = interleaved<true>(rows[i], rows[i + kWidth / 2], kLanesOfP);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kWidth; ++i) rows[i] = turned[i];
  }
  Sums result = none;
#pragma GCC unroll 16
  for (int lane = 0; lane < kWidth; ++lane) result = P::of(result, rows[lane]);
  result.store_aligned(results);
  if (n % kWidth == 0) return;
  for (int r = 0; r < kWidth; ++r)
    for (std::int64_t i = n / kWidth * kWidth; i < n; ++i)
      results[r] = P::of(results[r], static_cast<typename P::Sum>(x[r * n + i]));
}

/// Adds x[k·step + j] to sums[j] for k < n. j spans eight vectors, which stay in registers.
/// Prefetches the elements n rows ahead.
template <class P>
void reduce_block(const typename P::Element* x, std::int64_t n, std::int64_t step,
                  typename P::Sum* sums) {
  constexpr int kVectors = 8, kWidth = P::kWidth, kLine = 64 / sizeof(typename P::Element);
  typename P::Sums block[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) block[v] = P::Sums::load_unaligned(sums + v * kWidth);
  for (std::int64_t k = 0; k < n; ++k, x += step) {
    for (int j = 0; j < kVectors * kWidth; j += kLine) __builtin_prefetch(x + n * step + j);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) block[v] = P::of(block[v], P::load(x + v * kWidth));
  }
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) block[v].store_unaligned(sums + v * kWidth);
}

/// Adds x[k·step + j] to sums[j] for all k. For a few rows at a time, which stay in the first-level
/// cache, it walks over blocks of columns.
template <class P>
__attribute__((optimize("O3"))) void reduce_columns(const typename P::Element* x, std::int64_t n,
                                                    std::int64_t step, std::int64_t width,
                                                    typename P::Sum* __restrict sums) {
  constexpr std::int64_t kRows = 8;
  for (std::int64_t k = 0; k < n; k += kRows, x += kRows * step) {
    const std::int64_t rows = n - k < kRows ? n - k : kRows;
    std::int64_t j = 0;
    if constexpr (HasVectors<P>)
      for (; j + 8 * P::kWidth <= width; j += 8 * P::kWidth)
        reduce_block<P>(x + j, rows, step, sums + j);
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t i = j; i < width; ++i)
        sums[i] = P::of(sums[i], static_cast<typename P::Sum>(x[row * step + i]));
  }
}

}  // namespace
}  // namespace reel::REEL_ISA
