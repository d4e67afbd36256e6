// The loops of softmax, log_softmax and logsumexp. Compiled as reductions_isa.cpp is;
// softmax.cpp selects one of the tables.
//
// All values are relative to the row's largest element m. An element of -inf has a share of zero
// for every m, because it may stand for padding. Shares are added in double.
#include "reel/core/ops/kernels/softmax_table.h"

#include <type_traits>

#include "reel/core/ops/kernels/reduce_isa.h"

namespace reel::REEL_ISA {
namespace {

/// Returns the reference of a row: its largest element m, or 0 if that is -inf, because -inf - -inf
/// is NaN.
template <class T>
[[gnu::always_inline]] inline Vector<T> reference(const Vector<T>& m) {
  return xsimd::select(m == Vector<T>(lowest<T>()), Vector<T>(T(0)), m);
}

/// Returns exp(x - m), or 0 for x = -inf. It is 0 far below m too: xsimd 8.1 converts its argument
/// to an integer, which must fit. Only lanes without an element are above m.
template <class T>
[[gnu::always_inline]] inline Vector<T> share(const Vector<T>& x, const Vector<T>& m) {
  const Vector<T> least(T(sizeof(T) == 4 ? -200 : -1000));
  return xsimd::select(x == Vector<T>(lowest<T>()), Vector<T>(T(0)),
                       xsimd::exp(xsimd::max(least, xsimd::min(Vector<T>(T(0)), x - m))));
}

/// Sums of shares, one for each lane of a vector.
template <class T>
struct Sums {
  static constexpr int kParts = sizeof(double) / sizeof(T);
  Vector<double> part[kParts];

  Sums() {
    for (Vector<double>& sum : part) sum = Vector<double>(0.);
  }
  [[gnu::always_inline]] void add(const Vector<T>& shares) {
#pragma GCC unroll 2
    for (int i = 0; i < kParts; ++i) part[i] += widen_part(shares, i);
  }
  /// Returns the sum of all lanes.
  double of_lanes() const {
    if constexpr (kParts == 2)
      return sum_lanes(part[0] + part[1]);
    else
      return sum_lanes(part[0]);
  }
  /// Returns fn(sums), rounded to T.
  template <class Fn>
  Vector<T> each(const Fn& fn) const {
    if constexpr (kParts == 2)
      return narrow(fn(part[0]), fn(part[1]));
    else
      return fn(part[0]);
  }
};

/// Returns 1 / Σ, or 0 for a row of only -inf, which has no shares.
template <class T>
Vector<T> scale_of(const Sums<T>& sums) {
  return sums.each([](const Vector<double>& sum) {
    const Vector<double> one(1.);
    const auto is_nothing = sum == Vector<double>(0.);
    return xsimd::select(is_nothing, Vector<double>(0.), one / xsimd::select(is_nothing, one, sum));
  });
}
/// Returns log Σ, or 0 for a row of only -inf, because its elements do not use it.
template <class T>
Vector<T> log_of(const Sums<T>& sums) {
  return sums.each([](const Vector<double>& sum) {
    return xsimd::log(xsimd::select(sum == Vector<double>(0.), Vector<double>(1.), sum));
  });
}
/// Returns m + log Σ exp(x - m), for the largest element m. Returns m itself if it is infinite.
template <class T>
Vector<T> log_of_sum(const Vector<T>& m, const Sums<T>& sums) {
  const auto log = [](const Vector<double>& sum) {
    return xsimd::log(xsimd::select(sum == Vector<double>(0.), Vector<double>(1.), sum));
  };
  const auto is_infinite = (m == Vector<T>(lowest<T>())) | (m == Vector<T>(highest<T>()));
  const Vector<T> finite = xsimd::select(is_infinite, Vector<T>(T(0)), m);
  Vector<T> result;
  if constexpr (Sums<T>::kParts == 2)
    result = narrow(widen_part(finite, 0) + log(sums.part[0]),
                    widen_part(finite, 1) + log(sums.part[1]));
  else
    result = finite + log(sums.part[0]);
  return xsimd::select(is_infinite, m, result);
}

/// Returns (x - m) - log Σ exp(x - m), or -inf for x = -inf.
template <class T>
[[gnu::always_inline]] inline Vector<T> log_share(const Vector<T>& x, const Vector<T>& m,
                                                  const Vector<T>& log_sum) {
  const Vector<T> nothing(lowest<T>());
  return xsimd::select(x == nothing, nothing, x - m - log_sum);
}

// ---- Runs ---------------------------------------------------------------------------------------

/// Calls fn(j, load, store) for vectors of elements; the last may be part of a vector.
template <class T, class Fn>
[[gnu::always_inline]] inline void each_vector(std::int64_t n, const Fn& fn) {
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

/// The largest number of vectors of a run that stays in registers.
constexpr int kMaxVectors = 4;

/// A run of kVectors vectors, the last perhaps in part. Lanes without an element are -inf.
template <int kVectors, class T>
struct ShortRun {
  Vector<T> x[kVectors], shares[kVectors];
  Vector<T> of;  ///< the reference
  T m;
  double sum;  ///< of the shares

  [[gnu::always_inline]] ShortRun(const T* from, std::int64_t n) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors - 1; ++v) x[v] = load(from + v * kLanes<T>);
    x[kVectors - 1] = load_part_or(from + kBefore, n - kBefore, Vector<T>(lowest<T>()));
    Vector<T> largest = x[0];
#pragma GCC unroll 4
    for (int v = 1; v < kVectors; ++v) largest = MaxFloats<T>::of(largest, x[v]);
    largest = in_all_lanes<MaxFloats<T>>(largest);
    m = largest.data[0];
    of = reference(largest);
    Sums<T> sums;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums.add(shares[v] = share(x[v], of));
    sum = sums.of_lanes();
  }
  /// Stores fn(v) as each vector.
  template <class Fn>
  [[gnu::always_inline]] void store(T* to, std::int64_t n, const Fn& fn) const {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors - 1; ++v) fn(v).store_unaligned(to + v * kLanes<T>);
    store_part(to + kBefore, fn(kVectors - 1), n - kBefore);
  }

 private:
  static constexpr std::int64_t kBefore = (kVectors - 1) * kLanes<T>;
};

/// Calls fn(run, o) for each run. Returns false and does nothing if runs are long or empty.
template <class T, int kVectors = 1, class Fn>
bool each_short_run(const T* x, const Reduced& s, const Fn& fn) {
  if constexpr (kVectors <= kMaxVectors) {
    if (s.n > kVectors * kLanes<T>) return each_short_run<T, kVectors + 1>(x, s, fn);
    if (s.n == 0) return false;
    for (std::int64_t o = 0; o < s.outer; ++o, x += s.n) fn(ShortRun<kVectors, T>(x, s.n), o);
    return true;
  }
  return false;
}

/// Returns Σ exp(x - m) over a run.
template <class T>
double sum_of_shares(const T* x, std::int64_t n, const Vector<T>& m) {
  double sum = 0;
  alignas(64) T shares[256];
  for (std::int64_t i = 0; i < n; i += 256) {
    const std::int64_t count = n - i < 256 ? n - i : 256;
    each_vector<T>(count, [&](std::int64_t j, auto load, auto store) {
      store(shares + j, share(load(x + i + j), m));
    });
    sum += reduce_run<SumFloats<T>>(shares, count);
  }
  return sum;
}

/// Returns the sum's logarithm, or 0 for a row of only -inf.
inline double log_of(double sum) { return sum == 0 ? 0 : __builtin_log(sum); }
template <class T>
double log_of_sum(T m, double sum) {
  const bool is_infinite = m == lowest<T>() || m == highest<T>();
  return static_cast<double>(m) + (is_infinite ? 0 : __builtin_log(sum));
}

/// Out: T or double.
template <class T, class Out>
void logsumexp_of_runs(const T* x, Out* out, const Reduced& s) {
  if (each_short_run(x, s, [&](const auto& run, std::int64_t o) {
        out[o] = static_cast<Out>(log_of_sum(run.m, run.sum));
      }))
    return;
  for (std::int64_t o = 0; o < s.outer; ++o, x += s.n) {
    const T m = reduce_run<MaxFloats<T>>(x, s.n);
    out[o] = static_cast<Out>(log_of_sum(m, sum_of_shares(x, s.n, reference(Vector<T>(m)))));
  }
}

template <class T>
void normalisers(const void* from, void* to, const Reduced& s) {
  logsumexp_of_runs(static_cast<const T*>(from), static_cast<double*>(to), s);
}

template <class T>
void softmax_of_runs(const T* x, T* out, const Reduced& s) {
  const auto scale_of = [](double sum) {
    return Vector<T>(sum == 0 ? T(0) : static_cast<T>(1 / sum));
  };
  if (each_short_run(x, s, [&](const auto& run, std::int64_t o) {
        const Vector<T> scale = scale_of(run.sum);
        run.store(out + o * s.n, s.n, [&](int v) { return run.shares[v] * scale; });
      }))
    return;
  for (std::int64_t o = 0; o < s.outer; ++o, x += s.n, out += s.n) {
    const Vector<T> m = reference(Vector<T>(reduce_run<MaxFloats<T>>(x, s.n)));
    each_vector<T>(
        s.n, [&](std::int64_t j, auto load, auto store) { store(out + j, share(load(x + j), m)); });
    const Vector<T> scale = scale_of(reduce_run<SumFloats<T>>(out, s.n));
    each_vector<T>(
        s.n, [&](std::int64_t j, auto load, auto store) { store(out + j, load(out + j) * scale); });
  }
}

template <class T>
void log_softmax_of_runs(const T* x, T* out, const Reduced& s) {
  if (each_short_run(x, s, [&](const auto& run, std::int64_t o) {
        const Vector<T> log_sum(static_cast<T>(log_of(run.sum)));
        run.store(out + o * s.n, s.n, [&](int v) { return log_share(run.x[v], run.of, log_sum); });
      }))
    return;
  for (std::int64_t o = 0; o < s.outer; ++o, x += s.n, out += s.n) {
    const Vector<T> m = reference(Vector<T>(reduce_run<MaxFloats<T>>(x, s.n)));
    const Vector<T> log_sum(static_cast<T>(log_of(sum_of_shares(x, s.n, m))));
    each_vector<T>(s.n, [&](std::int64_t j, auto load, auto store) {
      store(out + j, log_share(load(x + j), m, log_sum));
    });
  }
}

// ---- Columns ------------------------------------------------------------------------------------

/// kVectors vectors of adjacent columns of a block, by their first element. Wide stripes read more
/// of each memory page.
template <class T, int kVectors, class Load, class Store>
struct Stripe {
  static constexpr int kSize = kVectors;
  const T* x;
  T* out;
  const Reduced& s;
  Load load;
  Store store;

  /// Calls fn(v, elements, where the result is) for the vectors of all rows.
  template <class Fn>
  [[gnu::always_inline]] void each(const T* from, const Fn& fn) const {
    for (std::int64_t k = 0, at = 0; k < s.n; ++k, at += s.inner)
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v)
        fn(v, load(from + at + v * kLanes<T>), out + at + v * kLanes<T>);
  }
  [[gnu::always_inline]] void find_largest(Vector<T> (&m)[kVectors]) const {
    for (Vector<T>& largest : m) largest = Vector<T>(lowest<T>());
    each(x, [&](int v, const Vector<T>& at, T*) { m[v] = MaxFloats<T>::of(m[v], at); });
  }
  /// Calls fn(shares, where the result is) for the vectors of all rows.
  template <class Fn>
  [[gnu::always_inline]] void add_shares(const Vector<T> (&m)[kVectors], Sums<T> (&sums)[kVectors],
                                         const Fn& fn) const {
    each(x, [&](int v, const Vector<T>& at, T* to) {
      const Vector<T> made = share(at, m[v]);
      sums[v].add(made);
      fn(made, to);
    });
  }
};

/// Calls fn(stripe) for all columns. rows: of a block of out.
template <class T, class Fn>
void each_stripe(const void* from, void* to, std::int64_t rows, const Reduced& s, const Fn& fn) {
  constexpr int kWide = 8, kColumns = kWide * kLanes<T>;
  const T* x = static_cast<const T*>(from);
  T* out = static_cast<T*>(to);
  for (std::int64_t o = 0; o < s.outer; ++o, x += s.n * s.inner, out += rows * s.inner) {
    std::int64_t j = 0;
    for (; j + kColumns <= s.inner; j += kColumns) {
      const auto load_all = [](const T* at) { return load(at); };
      const auto store_all = [](T* at, const Vector<T>& values) { values.store_unaligned(at); };
      fn(Stripe<T, kWide, decltype(load_all), decltype(store_all)>{x + j, out + j, s, load_all,
                                                                   store_all});
    }
    each_vector<T>(s.inner - j, [&](std::int64_t i, auto load, auto store) {
      fn(Stripe<T, 1, decltype(load), decltype(store)>{x + j + i, out + j + i, s, load, store});
    });
  }
}

template <class T>
void logsumexp(const void* from, void* to, const Reduced& s) {
  if (s.inner == 1) return logsumexp_of_runs(static_cast<const T*>(from), static_cast<T*>(to), s);
  each_stripe<T>(from, to, 1, s, [](const auto& stripe) {
    constexpr int kSize = std::remove_cvref_t<decltype(stripe)>::kSize;
    Vector<T> m[kSize], of[kSize];
    Sums<T> sums[kSize];
    stripe.find_largest(m);
    for (int v = 0; v < kSize; ++v) of[v] = reference(m[v]);
    stripe.add_shares(of, sums, [](const Vector<T>&, T*) {});
    for (int v = 0; v < kSize; ++v)
      stripe.store(stripe.out + v * kLanes<T>, log_of_sum(m[v], sums[v]));
  });
}

template <class T>
void softmax(const void* from, void* to, const Reduced& s) {
  if (s.inner == 1) return softmax_of_runs(static_cast<const T*>(from), static_cast<T*>(to), s);
  each_stripe<T>(from, to, s.n, s, [](const auto& stripe) {
    constexpr int kSize = std::remove_cvref_t<decltype(stripe)>::kSize;
    Vector<T> m[kSize];
    Sums<T> sums[kSize];
    stripe.find_largest(m);
    for (Vector<T>& of : m) of = reference(of);
    stripe.add_shares(m, sums, [&](const Vector<T>& made, T* at) { stripe.store(at, made); });
    Vector<T> scale[kSize];
    for (int v = 0; v < kSize; ++v) scale[v] = scale_of(sums[v]);
    stripe.each(stripe.out,
                [&](int v, const Vector<T>& made, T* at) { stripe.store(at, made * scale[v]); });
  });
}

template <class T>
void log_softmax(const void* from, void* to, const Reduced& s) {
  if (s.inner == 1) return log_softmax_of_runs(static_cast<const T*>(from), static_cast<T*>(to), s);
  each_stripe<T>(from, to, s.n, s, [](const auto& stripe) {
    constexpr int kSize = std::remove_cvref_t<decltype(stripe)>::kSize;
    Vector<T> m[kSize], log_sum[kSize];
    Sums<T> sums[kSize];
    stripe.find_largest(m);
    for (Vector<T>& of : m) of = reference(of);
    stripe.add_shares(m, sums, [](const Vector<T>&, T*) {});
    for (int v = 0; v < kSize; ++v) log_sum[v] = log_of(sums[v]);
    stripe.each(stripe.x, [&](int v, const Vector<T>& x, T* at) {
      stripe.store(at, log_share(x, m[v], log_sum[v]));
    });
  });
}

template <class T>
void scaled_shares(const void* from, void* to, std::int64_t n, double normaliser, double factor) {
  const T* const x = static_cast<const T*>(from);
  T* const out = static_cast<T*>(to);
  const Vector<T> m(static_cast<T>(normaliser)), scale(static_cast<T>(factor));
  each_vector<T>(n, [&](std::int64_t j, auto load, auto store) {
    store(out + j, share(load(x + j), m) * scale);
  });
}

}  // namespace

constinit const SoftmaxTable softmaxes{
    .logsumexp = {logsumexp<float>, logsumexp<double>},
    .normalisers = {normalisers<float>, normalisers<double>},
    .softmax = {softmax<float>, softmax<double>},
    .log_softmax = {log_softmax<float>, log_softmax<double>},
    .scaled_shares = {scaled_shares<float>, scaled_shares<double>},
};

}  // namespace reel::REEL_ISA
