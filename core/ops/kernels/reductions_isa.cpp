// The loops of reductions. Compiled three times, with -DREEL_ISA=sse42, avx2 and avx512 and the
// flags for it; reductions.cpp selects one of the tables at program start.
#include "reel/core/ops/kernels/reduction_table.h"
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

// ---- Walking ------------------------------------------------------------------------------------

/// Reduces a contiguous run.
template <class P>
__attribute__((optimize("O3"))) typename P::Sum reduce_run(const typename P::Element* x,
                                                           std::int64_t n) {
  typename P::Sum result = P::kNone;
  std::int64_t i = 0;
  if constexpr (HasVectors<P>) {
    constexpr int kWidth = P::kWidth;
    if (n >= 2 * kWidth) {
      typename P::Sums sums[4] = {typename P::Sums(P::kNone), typename P::Sums(P::kNone),
                                  typename P::Sums(P::kNone), typename P::Sums(P::kNone)};
      for (; i + 4 * kWidth <= n; i += 4 * kWidth)
#pragma GCC unroll 4
        for (int k = 0; k < 4; ++k) sums[k] = P::of(sums[k], P::load(x + i + k * kWidth));
      for (; i + kWidth <= n; i += kWidth) sums[0] = P::of(sums[0], P::load(x + i));
      alignas(64) typename P::Sum lanes[kWidth];
      P::of(P::of(sums[0], sums[1]), P::of(sums[2], sums[3])).store_aligned(lanes);
      for (int k = 0; k < kWidth; ++k) result = P::of(result, lanes[k]);
    }
  }
  for (; i < n; ++i) result = P::of(result, static_cast<typename P::Sum>(x[i]));
  return result;
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

template <class P>
__attribute__((optimize("O3"))) void reduce(const void* from, void* to, const Reduced& s) {
  using Element = typename P::Element;
  using Sum = typename P::Sum;
  const auto* x = static_cast<const Element*>(from);
  auto* out = static_cast<Element*>(to);
  if (s.inner == 1) {
    for (std::int64_t o = 0; o < s.outer; ++o)
      out[o] = static_cast<Element>(reduce_run<P>(x + o * s.n, s.n));
    return;
  }
  // With few columns, several rows are treated as one, and their sums are added at the end.
  const std::int64_t together = s.inner < 32 && s.n * s.inner >= 128 ? 64 / s.inner : 1;
  alignas(64) Sum sums[kColumns];
  for (std::int64_t o = 0; o < s.outer; ++o, x += s.n * s.inner, out += s.inner)
    for (std::int64_t j = 0; j < s.inner; j += kColumns) {
      const std::int64_t width = s.inner - j < kColumns ? s.inner - j : kColumns;
      const std::int64_t wide = together * width, first = s.n / together;
      for (std::int64_t i = 0; i < wide; ++i) sums[i] = P::kNone;
      reduce_columns<P>(x + j, first, together * s.inner, wide, sums);
      for (std::int64_t i = width; i < wide; ++i) sums[i % width] = P::of(sums[i % width], sums[i]);
      reduce_columns<P>(x + j + first * together * s.inner, s.n - first * together, s.inner, width,
                        sums);
      for (std::int64_t i = 0; i < width; ++i) out[j + i] = static_cast<Element>(sums[i]);
    }
}

// ---- argmax and argmin --------------------------------------------------------------------------

/// Returns the position of the largest or smallest element, as P::of selects it; the first of equal
/// ones.
template <class P>
__attribute__((optimize("O3"))) void arg_extreme(const void* from, void* to, const Reduced& s) {
  using T = typename P::Element;
  const T* x = static_cast<const T*>(from);
  auto* out = static_cast<std::int32_t*>(to);
  if (s.inner == 1) {
    for (std::int64_t o = 0; o < s.outer; ++o, x += s.n) {
      const T best = reduce_run<P>(x, s.n);
      std::int64_t at = 0;
      while (at < s.n && x[at] != best && x[at] == x[at]) ++at;
      out[o] = static_cast<std::int32_t>(at < s.n ? at : 0);
    }
    return;
  }
  constexpr bool kIsMax = P::kNone == lowest<T>();
  T best[kColumns];
  std::int32_t at[kColumns];
  for (std::int64_t o = 0; o < s.outer; ++o, x += s.n * s.inner, out += s.inner)
    for (std::int64_t j = 0; j < s.inner; j += kColumns) {
      const std::int64_t width = s.inner - j < kColumns ? s.inner - j : kColumns;
      for (std::int64_t i = 0; i < width; ++i) best[i] = P::kNone, at[i] = 0;
      for (std::int64_t k = 0; k < s.n; ++k) {
        const T* row = x + k * s.inner + j;
        for (std::int64_t i = 0; i < width; ++i) {
          const bool is_better = (kIsMax ? row[i] > best[i] : row[i] < best[i]) |
                                 ((row[i] != row[i]) & (best[i] == best[i]));
          best[i] = is_better ? row[i] : best[i];
          at[i] = is_better ? static_cast<std::int32_t>(k) : at[i];
        }
      }
      for (std::int64_t i = 0; i < width; ++i) out[j + i] = at[i];
    }
}

// ---- softmax and its relatives ------------------------------------------------------------------
//
// All values are relative to the row's largest element m. An element of -inf has a share of zero
// for every m, because it may stand for padding.

/// Returns the reference of a row: its largest element m, or 0 if that is -inf, because -inf - -inf
/// is NaN.
template <class T>
[[gnu::always_inline]] inline T reference(T m) {
  return m == lowest<T>() ? T(0) : m;
}

/// Returns exp(x - m), or 0 for x = -inf. It is 0 far below m too: xsimd 8.1 converts its argument
/// to an integer, which must fit. Only lanes without an element are above m.
template <class T>
[[gnu::always_inline]] inline Vector<T> share(const Vector<T>& x, const Vector<T>& m) {
  const Vector<T> least(T(sizeof(T) == 4 ? -200 : -1000));
  return xsimd::select(x == Vector<T>(lowest<T>()), Vector<T>(T(0)),
                       xsimd::exp(xsimd::max(least, xsimd::min(Vector<T>(T(0)), x - m))));
}

/// Calls fn(j, count, load, store) for vectors of elements; the last may be part of a vector.
template <class T, class Fn>
inline void each_vector(std::int64_t n, const Fn& fn) {
  std::int64_t j = 0;
  for (; j + kLanes<T> <= n; j += kLanes<T>)
    fn(
        j, [](const T* x) { return load(x); },
        [](T* to, const Vector<T>& v) { v.store_unaligned(to); });
  if (const std::int64_t part = n - j)
    fn(
        j, [part](const T* x) { return load_part(x, part); },
        [part](T* to, const Vector<T>& v) { store_part(to, v, part); });
}

/// Returns Σ exp(x - m) over a run.
template <class T>
double sum_of_shares(const T* x, std::int64_t n, T m) {
  double sum = 0;
  alignas(64) T shares[256];
  for (std::int64_t i = 0; i < n; i += 256) {
    const std::int64_t count = n - i < 256 ? n - i : 256;
    each_vector<T>(count, [&](std::int64_t j, auto load, auto store) {
      store(shares + j, share<T>(load(x + i + j), Vector<T>(m)));
    });
    sum += reduce_run<SumFloats<T>>(shares, count);
  }
  return sum;
}

/// Returns m + log Σ exp(x - m), for the largest element m. Returns m itself if it is infinite,
/// without a floating-point exception.
template <class T>
T log_of_sum(T m, double sum) {
  const bool is_infinite = m == lowest<T>() || m == highest<T>();
  return is_infinite ? m : static_cast<T>(static_cast<double>(m) + __builtin_log(sum));
}
/// Returns log Σ exp(x - m), or 0 for a row of only -inf, because its elements do not use it.
template <class T>
T log_of_shares(double sum) {
  return sum == 0 ? T(0) : static_cast<T>(__builtin_log(sum));
}

/// Computes largest elements m, references, and sums of shares of `width` columns; the buffers have
/// room for kColumns. Writes the shares of row k to kept + k·step.
template <class T>
void column_sums(const T* x, const Reduced& s, std::int64_t width, T* m, T* references,
                 double* sums, T* kept, std::int64_t step) {
  for (std::int64_t i = 0; i < width; ++i) m[i] = lowest<T>(), sums[i] = 0;
  reduce_columns<MaxFloats<T>>(x, s.n, s.inner, width, m);
  for (std::int64_t i = 0; i < width; ++i) references[i] = reference(m[i]);
  for (std::int64_t k = 0; k < s.n; ++k, x += s.inner, kept += step) {
    each_vector<T>(width, [&](std::int64_t j, auto load, auto store) {
      store(kept + j, share<T>(load(x + j), load(references + j)));
    });
    reduce_columns<SumFloats<T>>(kept, 1, 0, width, sums);
  }
}

/// Calls fn(x, out, width) for blocks of columns; out has `rows` rows per block of the outer axes.
template <class T, class Fn>
void each_column_block(const void* from, void* to, const Reduced& s, std::int64_t rows,
                       const Fn& fn) {
  const T* x = static_cast<const T*>(from);
  T* out = static_cast<T*>(to);
  for (std::int64_t o = 0; o < s.outer; ++o, x += s.n * s.inner, out += rows * s.inner)
    for (std::int64_t j = 0; j < s.inner; j += kColumns)
      fn(x + j, out + j, s.inner - j < kColumns ? s.inner - j : kColumns);
}

template <class T>
void logsumexp(const void* from, void* to, const Reduced& s) {
  if (s.inner == 1) {
    const T* x = static_cast<const T*>(from);
    for (std::int64_t o = 0; o < s.outer; ++o, x += s.n) {
      const T m = reduce_run<MaxFloats<T>>(x, s.n);
      static_cast<T*>(to)[o] = log_of_sum(m, sum_of_shares(x, s.n, reference(m)));
    }
    return;
  }
  each_column_block<T>(from, to, s, 1, [&](const T* x, T* out, std::int64_t width) {
    alignas(64) T m[kColumns], references[kColumns], shares[kColumns];
    alignas(64) double sums[kColumns];
    column_sums(x, s, width, m, references, sums, shares, 0);
    for (std::int64_t i = 0; i < width; ++i) out[i] = log_of_sum(m[i], sums[i]);
  });
}

template <class T>
void softmax(const void* from, void* to, const Reduced& s) {
  if (s.inner == 1) {
    const T* x = static_cast<const T*>(from);
    T* out = static_cast<T*>(to);
    for (std::int64_t o = 0; o < s.outer; ++o, x += s.n, out += s.n) {
      const Vector<T> m(reference(reduce_run<MaxFloats<T>>(x, s.n)));
      each_vector<T>(s.n, [&](std::int64_t j, auto load, auto store) {
        store(out + j, share<T>(load(x + j), m));
      });
      const double sum = reduce_run<SumFloats<T>>(out, s.n);
      const Vector<T> scale(sum == 0 ? T(0) : static_cast<T>(1 / sum));
      each_vector<T>(s.n, [&](std::int64_t j, auto load, auto store) {
        store(out + j, load(out + j) * scale);
      });
    }
    return;
  }
  each_column_block<T>(from, to, s, s.n, [&](const T* x, T* out, std::int64_t width) {
    alignas(64) T m[kColumns], references[kColumns], scale[kColumns];
    alignas(64) double sums[kColumns];
    column_sums(x, s, width, m, references, sums, out, s.inner);
    for (std::int64_t i = 0; i < width; ++i)
      scale[i] = sums[i] == 0 ? T(0) : static_cast<T>(1 / sums[i]);
    for (std::int64_t k = 0; k < s.n; ++k, out += s.inner)
      each_vector<T>(width, [&](std::int64_t j, auto load, auto store) {
        store(out + j, load(out + j) * load(scale + j));
      });
  });
}

/// Returns (x - m) - log Σ exp(x - m), or -inf for x = -inf.
template <class T>
Vector<T> log_share(const Vector<T>& x, const Vector<T>& m, const Vector<T>& log_sum) {
  const Vector<T> nothing(lowest<T>());
  return xsimd::select(x == nothing, nothing, x - m - log_sum);
}

template <class T>
void log_softmax(const void* from, void* to, const Reduced& s) {
  if (s.inner == 1) {
    const T* x = static_cast<const T*>(from);
    T* out = static_cast<T*>(to);
    for (std::int64_t o = 0; o < s.outer; ++o, x += s.n, out += s.n) {
      const T m = reference(reduce_run<MaxFloats<T>>(x, s.n));
      const Vector<T> log_sum(log_of_shares<T>(sum_of_shares(x, s.n, m)));
      each_vector<T>(s.n, [&](std::int64_t j, auto load, auto store) {
        store(out + j, log_share<T>(load(x + j), Vector<T>(m), log_sum));
      });
    }
    return;
  }
  each_column_block<T>(from, to, s, s.n, [&](const T* x, T* out, std::int64_t width) {
    alignas(64) T m[kColumns], references[kColumns], log_sums[kColumns], shares[kColumns];
    alignas(64) double sums[kColumns];
    column_sums(x, s, width, m, references, sums, shares, 0);
    for (std::int64_t i = 0; i < width; ++i) log_sums[i] = log_of_shares<T>(sums[i]);
    for (std::int64_t k = 0; k < s.n; ++k)
      each_vector<T>(width, [&](std::int64_t j, auto load, auto store) {
        store(out + k * s.inner + j,
              log_share<T>(load(x + k * s.inner + j), load(references + j), load(log_sums + j)));
      });
  });
}

}  // namespace

constinit const ReductionTable reductions{
    .sum = {reduce<SumFloats<float>>, reduce<SumFloats<double>>,
            reduce<SumIntegers<std::int32_t, std::uint32_t>>,
            reduce<SumIntegers<std::int64_t, std::uint64_t>>, nullptr},
    .prod = {reduce<ProductFloats<float>>, reduce<ProductFloats<double>>,
             reduce<ProductIntegers<std::int32_t, std::uint32_t>>,
             reduce<ProductIntegers<std::int64_t, std::uint64_t>>, nullptr},
    .max = {reduce<MaxFloats<float>>, reduce<MaxFloats<double>>, reduce<MaxIntegers<std::int32_t>>,
            reduce<MaxIntegers<std::int64_t>>, nullptr},
    .min = {reduce<MinFloats<float>>, reduce<MinFloats<double>>, reduce<MinIntegers<std::int32_t>>,
            reduce<MinIntegers<std::int64_t>>, nullptr},
    .argmax = {arg_extreme<MaxFloats<float>>, arg_extreme<MaxFloats<double>>,
               arg_extreme<MaxIntegers<std::int32_t>>, arg_extreme<MaxIntegers<std::int64_t>>,
               nullptr},
    .argmin = {arg_extreme<MinFloats<float>>, arg_extreme<MinFloats<double>>,
               arg_extreme<MinIntegers<std::int32_t>>, arg_extreme<MinIntegers<std::int64_t>>,
               nullptr},
    .any = reduce<Any>,
    .all = reduce<All>,
    .logsumexp = {logsumexp<float>, logsumexp<double>},
    .softmax = {softmax<float>, softmax<double>},
    .log_softmax = {log_softmax<float>, log_softmax<double>},
};

}  // namespace reel::REEL_ISA
