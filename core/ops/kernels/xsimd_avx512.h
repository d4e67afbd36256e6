// core/ops/kernels/xsimd_avx512.h — fused products and sums of xsimd for AVX-512.
//
// xsimd 8.1 has none: its fma(x, y, z) is x * y + z, which GCC fuses unless a branch comes between
// the two. AddressSanitizer sets branches there, so kernels had other bits than the code of plans.
// These are specialisations of xsimd's own functions, so that its exp, log and others use them.
// They are always inlined, as in xsimd_neon.h.
#pragma once

#include <immintrin.h>

#include <xsimd/xsimd.hpp>

namespace xsimd::kernel {

using Floats = batch<float, avx512f>;
using Doubles = batch<double, avx512f>;

template <>
[[gnu::always_inline]] inline Floats fma<avx512f, float>(const Floats& x, const Floats& y,
                                                         const Floats& z,
                                                         requires_arch<generic>) noexcept {
  return _mm512_fmadd_ps(x, y, z);
}
template <>
[[gnu::always_inline]] inline Doubles fma<avx512f, double>(const Doubles& x, const Doubles& y,
                                                           const Doubles& z,
                                                           requires_arch<generic>) noexcept {
  return _mm512_fmadd_pd(x, y, z);
}
template <>
[[gnu::always_inline]] inline Floats fms<avx512f, float>(const Floats& x, const Floats& y,
                                                         const Floats& z,
                                                         requires_arch<generic>) noexcept {
  return _mm512_fmsub_ps(x, y, z);
}
template <>
[[gnu::always_inline]] inline Doubles fms<avx512f, double>(const Doubles& x, const Doubles& y,
                                                           const Doubles& z,
                                                           requires_arch<generic>) noexcept {
  return _mm512_fmsub_pd(x, y, z);
}
template <>
[[gnu::always_inline]] inline Floats fnma<avx512f, float>(const Floats& x, const Floats& y,
                                                          const Floats& z,
                                                          requires_arch<generic>) noexcept {
  return _mm512_fnmadd_ps(x, y, z);
}
template <>
[[gnu::always_inline]] inline Doubles fnma<avx512f, double>(const Doubles& x, const Doubles& y,
                                                            const Doubles& z,
                                                            requires_arch<generic>) noexcept {
  return _mm512_fnmadd_pd(x, y, z);
}

}  // namespace xsimd::kernel
