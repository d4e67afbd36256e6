// The loops of convolutions with a filter for each channel. Compiled once for each instruction set,
// with -DREEL_ISA=avx2 and the like, and the flags for it.
#include "reel/core/ops/kernels/depthwise_table.h"
#include "reel/core/ops/kernels/each_vector.h"

namespace reel::REEL_ISA {
namespace {

/// Rows that are computed together: their taps share the loads of the filter.
constexpr int kRows = 4;

/// Computes R rows from row `first` on.
template <class T, int R>
void multiply_rows(const DepthwiseRows& s, std::int64_t first, const T* filter, T* out,
                   std::int64_t out_step) {
  const T* const source = static_cast<const T*>(s.source) + first * s.source_step;
  each_vector<T>(s.width, [&](std::int64_t c, auto load, auto store) {
    Vector<T> sum[R];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) sum[r] = Vector<T>(T(0));
    for (std::int64_t tap = 0; tap < s.taps; ++tap) {
      const Vector<T> factor = load(filter + s.places[tap] + c);
      const T* const from = source + s.offsets[tap] + c;
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r)
        sum[r] = xsimd::fma(load(from + r * s.source_step), factor, sum[r]);
    }
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) store(out + (first + r) * out_step + c, sum[r]);
  });
}

template <class T>
void multiply(const DepthwiseRows& s, const void* filter, void* out, std::int64_t out_step) {
  const T* const from = static_cast<const T*>(filter);
  T* const to = static_cast<T*>(out);
  std::int64_t row = 0;
  for (; row + kRows <= s.rows; row += kRows) multiply_rows<T, kRows>(s, row, from, to, out_step);
  for (; row < s.rows; ++row) multiply_rows<T, 1>(s, row, from, to, out_step);
}

/// Rows that are summed before the sums are stored: these rows stay in the first-level cache.
constexpr std::int64_t kSummedRows = 16;

template <class T>
void sum(const DepthwiseRows& s, const void* y, std::int64_t y_step, void* filter) {
  const T *const source = static_cast<const T*>(s.source), *const rows = static_cast<const T*>(y);
  T* const sums = static_cast<T*>(filter);
  for (std::int64_t first = 0; first < s.rows; first += kSummedRows) {
    const std::int64_t count = s.rows - first < kSummedRows ? s.rows - first : kSummedRows;
    each_vector<T>(s.width, [&](std::int64_t c, auto load, auto store) {
      const T* const factor = rows + first * y_step + c;
      for (std::int64_t tap = 0; tap < s.taps; ++tap) {
        const T* const from = source + first * s.source_step + s.offsets[tap] + c;
        Vector<T> total = load(sums + s.places[tap] + c);
        for (std::int64_t row = 0; row < count; ++row)
          total = xsimd::fma(load(from + row * s.source_step), load(factor + row * y_step), total);
        store(sums + s.places[tap] + c, total);
      }
    });
  }
}

}  // namespace

constinit const DepthwiseTable depthwise{
    .multiply = {multiply<float>, multiply<double>},
    .sum = {sum<float>, sum<double>},
};

}  // namespace reel::REEL_ISA
