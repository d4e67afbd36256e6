// core/ops/kernels/vector_aarch64.h — vectors of NEON, by intrinsics.
//
// For vector_isa.h, which has the contracts of these functions.
#pragma once

#include <arm_neon.h>

#include <cstdint>
#include <xsimd/xsimd.hpp>

#include "reel/core/ops/kernels/xsimd_neon.h"

namespace reel::REEL_ISA {
namespace {

using Arch = xsimd::neon64;
constexpr int kRegisters = 32;
constexpr bool kHasFma = true;

}  // namespace
}  // namespace reel::REEL_ISA

#include "reel/core/ops/kernels/vector_base_isa.h"
#include "reel/core/ops/kernels/vector_parts_isa.h"

namespace reel::REEL_ISA {
namespace {

inline Vector<double> widen(const float* from) { return vcvt_f64_f32(vld1_f32(from)); }
[[gnu::always_inline]] inline Vector<double> widen_part(const Vector<float>& x, int part) {
  return part ? vcvt_high_f64_f32(x.data) : vcvt_f64_f32(vget_low_f32(x.data));
}
inline Vector<float> narrow(const Vector<double>& first, const Vector<double>& second) {
  return vcvt_high_f32_f64(vcvt_f32_f64(first.data), second.data);
}

inline float32x4_t fold(float32x4_t x) { return x; }
inline float64x2_t fold(float64x2_t x) { return x; }
inline void store_folded(float* to, float32x4_t x) { vst1q_f32(to, x); }
inline void store_folded(double* to, float64x2_t x) { vst1q_f64(to, x); }

template <class T>
inline Vector<T> larger(const Vector<T>& a, const Vector<T>& b) {
  return xsimd::select(b > a, b, a);
}
template <class T>
inline Vector<T> smaller(const Vector<T>& a, const Vector<T>& b) {
  return xsimd::select(b < a, b, a);
}
template <class T>
inline bool has_nan(const Vector<T>& a, const Vector<T>& b, const Vector<T>& c,
                    const Vector<T>& d) {
  return xsimd::any((xsimd::isnan(a) | xsimd::isnan(b)) | (xsimd::isnan(c) | xsimd::isnan(d)));
}

using Words = uint64x2_t;
inline Words product_of_words(Words a, Words b) { return vmull_u32(vmovn_u64(a), vmovn_u64(b)); }

}  // namespace
}  // namespace reel::REEL_ISA
