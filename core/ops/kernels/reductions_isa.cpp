// The loops of reductions. Compiled once for each instruction set, with -DREEL_ISA=avx2 and the
// like, and the flags for it; reductions.cpp selects one of the tables at program start.
#include "reel/core/ops/kernels/reduce_isa.h"
#include "reel/core/ops/kernels/reduction_table.h"

namespace reel::REEL_ISA {
namespace {

template <class P>
__attribute__((optimize("O3"))) void reduce(const void* from, void* to, const Reduced& s) {
  using Element = typename P::Element;
  using Sum = typename P::Sum;
  const auto* x = static_cast<const Element*>(from);
  auto* out = static_cast<Element*>(to);
  if (s.inner == 1) {
    std::int64_t o = 0;
    if constexpr (HasVectors<P>) {
      constexpr int kWidth = P::kWidth;
      alignas(64) Sum sums[kWidth];
      if (s.n >= 2 * kWidth)
        for (; o + kWidth <= s.outer; o += kWidth) {
          reduce_runs<P>(x + o * s.n, s.n, sums);
          for (int r = 0; r < kWidth; ++r) out[o + r] = static_cast<Element>(sums[r]);
        }
    }
    for (; o < s.outer; ++o) out[o] = static_cast<Element>(reduce_run<P>(x + o * s.n, s.n));
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
};

}  // namespace reel::REEL_ISA
