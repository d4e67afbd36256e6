// core/ops/kernels/vector_isa.h — vectors of a file's instruction set, with loads and stores of
// part of one.
//
// For *_isa.cpp files, which are compiled once for each instruction set, with -DREEL_ISA=avx2 and
// the like, and the flags for it. All declarations are local to the file, so that the linker cannot
// use code for a newer processor on an older one.
#pragma once

// GCC 12 warns about the deliberately undefined registers in its own AVX-512 header (PR 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

// The architecture's header defines, by intrinsics:
//
// Arch               the set's name in xsimd
// kRegisters         the number of vectors that registers hold
// kHasFma            true if a product and a sum can be rounded once
// Vector, kLanes, load
// widen(from)        loads as many elements as a vector of doubles has, converted to doubles
// widen_part(x, i)   the first (i = 0) or second half (1) of x as doubles; 0 is all of a double x
// narrow(a, b)       two vectors of doubles as one vector of floats
// load_part(from, count)            loads `count` elements; the other lanes are zeros
// store_part(to, values, count)     stores `count` elements
// load_part_or(from, count, rest)   as load_part; the other lanes come from `rest`
// load_repeated(from, count)        as load_part; the other lanes are copies of the first element,
//     because 0 / 0 and log(0) raise exceptions. Requires count > 0. Copies between registers.
// fold(x)            a vector of 16 bytes: the sum of a longer vector's halves, as often as needed
// store_folded(to, x)               stores such a vector
// larger(a, b), smaller(a, b)       of equal numbers, 0 and -0 too, a; require lanes without NaN
// has_nan(a, b, c, d)      true if a lane of a vector is NaN
// product_of_words(a, b)   of Words, lanes of 64 bits: the products of their lower halves
#if defined(__x86_64__)
#include "reel/core/ops/kernels/vector_x86_64.h"
#elif defined(__aarch64__)
#include "reel/core/ops/kernels/vector_aarch64.h"
#endif

namespace reel::REEL_ISA {
namespace {

inline Vector<double> widen(const double* from) { return load(from); }
[[gnu::always_inline]] inline Vector<double> widen_part(const Vector<double>& x, int) { return x; }

/// Writes the sums of the lanes of four vectors. Halves are added first, so each sum is a fixed
/// tree.
inline void sum_lanes(const Vector<float> (&x)[4], float* to) {
  const auto a = fold(x[0].data), b = fold(x[1].data), c = fold(x[2].data), d = fold(x[3].data);
  const auto ab =
      __builtin_shufflevector(a, b, 0, 4, 1, 5) + __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const auto cd =
      __builtin_shufflevector(c, d, 0, 4, 1, 5) + __builtin_shufflevector(c, d, 2, 6, 3, 7);
  store_folded(to, __builtin_shufflevector(ab, cd, 0, 1, 4, 5) +
                       __builtin_shufflevector(ab, cd, 2, 3, 6, 7));
}
inline void sum_lanes(const Vector<double> (&x)[4], double* to) {
  for (int i = 0; i < 4; i += 2) {
    const auto a = fold(x[i].data), b = fold(x[i + 1].data);
    store_folded(to + i, __builtin_shufflevector(a, b, 0, 2) + __builtin_shufflevector(a, b, 1, 3));
  }
}
/// Returns the sum of one vector's lanes, with the same bits.
inline float sum_lanes(const Vector<float>& x) {
  const auto a = fold(x.data);
  return (a[0] + a[2]) + (a[1] + a[3]);
}
inline double sum_lanes(const Vector<double>& x) {
  const auto a = fold(x.data);
  return a[0] + a[1];
}

}  // namespace
}  // namespace reel::REEL_ISA
