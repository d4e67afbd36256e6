// core/ops/kernels/vector_x86_64.h — vectors of an instruction set of x86-64, by intrinsics.
//
// For vector_isa.h, which has the contracts of these functions.
#pragma once

#include <cstdint>
#include <xsimd/xsimd.hpp>
#if defined(__AVX512F__)
#include "reel/core/ops/kernels/xsimd_avx512.h"
#endif

namespace reel::REEL_ISA {
namespace {

#if defined(__AVX512F__)
using Arch = xsimd::avx512f;
constexpr int kRegisters = 32;
#elif defined(__AVX2__) && defined(__FMA__)
using Arch = xsimd::fma3<xsimd::avx2>;
constexpr int kRegisters = 16;
#elif defined(__SSE4_2__)
using Arch = xsimd::sse4_2;
constexpr int kRegisters = 16;
#else
#error \
    "compile this file with -msse4.2, -mavx2 -mfma, or -mavx512f -mavx512cd -mavx512bw -mavx512dq -mavx512vl -mfma"
#endif

#if defined(__FMA__)
constexpr bool kHasFma = true;
#else
constexpr bool kHasFma = false;
#endif

}  // namespace
}  // namespace reel::REEL_ISA

#include "reel/core/ops/kernels/vector_base_isa.h"
#if !defined(__AVX2__)
#include "reel/core/ops/kernels/vector_parts_isa.h"
#endif

namespace reel::REEL_ISA {
namespace {

// By intrinsics: GCC 12 converts half a vector at a time.
inline Vector<double> widen(const float* from) {
#if defined(__AVX512F__)
  return _mm512_cvtps_pd(_mm256_loadu_ps(from));
#elif defined(__AVX2__)
  return _mm256_cvtps_pd(_mm_loadu_ps(from));
#else
  return _mm_set_pd(from[1], from[0]);
#endif
}

[[gnu::always_inline]] inline Vector<double> widen_part(const Vector<float>& x, int part) {
#if defined(__AVX512F__)
  return _mm512_cvtps_pd(part ? _mm512_extractf32x8_ps(x.data, 1) : _mm512_castps512_ps256(x.data));
#elif defined(__AVX2__)
  return _mm256_cvtps_pd(part ? _mm256_extractf128_ps(x.data, 1) : _mm256_castps256_ps128(x.data));
#else
  return _mm_cvtps_pd(part ? _mm_movehl_ps(x.data, x.data) : x.data);
#endif
}
inline Vector<float> narrow(const Vector<double>& first, const Vector<double>& second) {
#if defined(__AVX512F__)
  return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(first.data)),
                            _mm512_cvtpd_ps(second.data), 1);
#elif defined(__AVX2__)
  return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(first.data)),
                              _mm256_cvtpd_ps(second.data), 1);
#else
  return _mm_movelh_ps(_mm_cvtpd_ps(first.data), _mm_cvtpd_ps(second.data));
#endif
}

#if defined(__AVX512F__)
inline Vector<float> load_part(const float* from, std::int64_t count) {
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1), from);
}
inline Vector<double> load_part(const double* from, std::int64_t count) {
  return _mm512_maskz_loadu_pd(static_cast<__mmask8>((1u << count) - 1), from);
}
inline void store_part(float* to, Vector<float> values, std::int64_t count) {
  _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1u << count) - 1), values);
}
inline void store_part(double* to, Vector<double> values, std::int64_t count) {
  _mm512_mask_storeu_pd(to, static_cast<__mmask8>((1u << count) - 1), values);
}
inline Vector<float> load_part_or(const float* from, std::int64_t count, Vector<float> rest) {
  return _mm512_mask_loadu_ps(rest, static_cast<__mmask16>((1u << count) - 1), from);
}
inline Vector<double> load_part_or(const double* from, std::int64_t count, Vector<double> rest) {
  return _mm512_mask_loadu_pd(rest, static_cast<__mmask8>((1u << count) - 1), from);
}
inline Vector<float> load_repeated(const float* from, std::int64_t count) {
  const __m512 part = load_part(from, count);
  return _mm512_mask_broadcastss_ps(part, static_cast<__mmask16>(~((1u << count) - 1)),
                                    _mm512_castps512_ps128(part));
}
inline Vector<double> load_repeated(const double* from, std::int64_t count) {
  const __m512d part = load_part(from, count);
  return _mm512_mask_broadcastsd_pd(part, static_cast<__mmask8>(~((1u << count) - 1)),
                                    _mm512_castpd512_pd128(part));
}
#elif defined(__AVX2__)
alignas(32) constexpr std::int32_t kMask32[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
alignas(32) constexpr std::int64_t kMask64[8] = {-1, -1, -1, -1};
inline __m256i mask32(std::int64_t count) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kMask32 + 8 - count));
}
inline __m256i mask64(std::int64_t count) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kMask64 + 4 - count));
}
inline Vector<float> load_part(const float* from, std::int64_t count) {
  return _mm256_maskload_ps(from, mask32(count));
}
inline Vector<double> load_part(const double* from, std::int64_t count) {
  return _mm256_maskload_pd(from, mask64(count));
}
inline void store_part(float* to, Vector<float> values, std::int64_t count) {
  _mm256_maskstore_ps(to, mask32(count), values);
}
inline void store_part(double* to, Vector<double> values, std::int64_t count) {
  _mm256_maskstore_pd(to, mask64(count), values);
}
inline Vector<float> load_part_or(const float* from, std::int64_t count, Vector<float> rest) {
  return _mm256_blendv_ps(rest, load_part(from, count), _mm256_castsi256_ps(mask32(count)));
}
inline Vector<double> load_part_or(const double* from, std::int64_t count, Vector<double> rest) {
  return _mm256_blendv_pd(rest, load_part(from, count), _mm256_castsi256_pd(mask64(count)));
}
inline Vector<float> load_repeated(const float* from, std::int64_t count) {
  const __m256 part = load_part(from, count);
  return _mm256_blendv_ps(_mm256_broadcastss_ps(_mm256_castps256_ps128(part)), part,
                          _mm256_castsi256_ps(mask32(count)));
}
inline Vector<double> load_repeated(const double* from, std::int64_t count) {
  const __m256d part = load_part(from, count);
  return _mm256_blendv_pd(_mm256_broadcastsd_pd(_mm256_castpd256_pd128(part)), part,
                          _mm256_castsi256_pd(mask64(count)));
}
#endif

inline __m128 fold(__m128 x) { return x; }
inline __m128d fold(__m128d x) { return x; }
#if defined(__AVX2__)
inline __m128 fold(__m256 x) {
  return __builtin_shufflevector(x, x, 0, 1, 2, 3) + __builtin_shufflevector(x, x, 4, 5, 6, 7);
}
inline __m128d fold(__m256d x) {
  return __builtin_shufflevector(x, x, 0, 1) + __builtin_shufflevector(x, x, 2, 3);
}
#endif
#if defined(__AVX512F__)
inline __m128 fold(__m512 x) {
  return fold(__builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7) +
              __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15));
}
inline __m128d fold(__m512d x) {
  return fold(__builtin_shufflevector(x, x, 0, 1, 2, 3) +
              __builtin_shufflevector(x, x, 4, 5, 6, 7));
}
#endif
inline void store_folded(float* to, __m128 x) { _mm_storeu_ps(to, x); }
inline void store_folded(double* to, __m128d x) { _mm_storeu_pd(to, x); }

// By intrinsics: of equal numbers they return the second one, and they compare with NaN silently.
#if defined(__AVX512F__)
inline Vector<float> larger(Vector<float> a, Vector<float> b) { return _mm512_max_ps(b, a); }
inline Vector<double> larger(Vector<double> a, Vector<double> b) { return _mm512_max_pd(b, a); }
inline Vector<float> smaller(Vector<float> a, Vector<float> b) { return _mm512_min_ps(b, a); }
inline Vector<double> smaller(Vector<double> a, Vector<double> b) { return _mm512_min_pd(b, a); }
inline bool has_nan(Vector<float> a, Vector<float> b, Vector<float> c, Vector<float> d) {
  return (_mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q) | _mm512_cmp_ps_mask(c, d, _CMP_UNORD_Q)) != 0;
}
inline bool has_nan(Vector<double> a, Vector<double> b, Vector<double> c, Vector<double> d) {
  return (_mm512_cmp_pd_mask(a, b, _CMP_UNORD_Q) | _mm512_cmp_pd_mask(c, d, _CMP_UNORD_Q)) != 0;
}
#elif defined(__AVX2__)
inline Vector<float> larger(Vector<float> a, Vector<float> b) { return _mm256_max_ps(b, a); }
inline Vector<double> larger(Vector<double> a, Vector<double> b) { return _mm256_max_pd(b, a); }
inline Vector<float> smaller(Vector<float> a, Vector<float> b) { return _mm256_min_ps(b, a); }
inline Vector<double> smaller(Vector<double> a, Vector<double> b) { return _mm256_min_pd(b, a); }
inline bool has_nan(Vector<float> a, Vector<float> b, Vector<float> c, Vector<float> d) {
  return _mm256_movemask_ps(_mm256_or_ps(_mm256_cmp_ps(a, b, _CMP_UNORD_Q),
                                         _mm256_cmp_ps(c, d, _CMP_UNORD_Q))) != 0;
}
inline bool has_nan(Vector<double> a, Vector<double> b, Vector<double> c, Vector<double> d) {
  return _mm256_movemask_pd(_mm256_or_pd(_mm256_cmp_pd(a, b, _CMP_UNORD_Q),
                                         _mm256_cmp_pd(c, d, _CMP_UNORD_Q))) != 0;
}
#else
inline Vector<float> larger(Vector<float> a, Vector<float> b) { return _mm_max_ps(b, a); }
inline Vector<double> larger(Vector<double> a, Vector<double> b) { return _mm_max_pd(b, a); }
inline Vector<float> smaller(Vector<float> a, Vector<float> b) { return _mm_min_ps(b, a); }
inline Vector<double> smaller(Vector<double> a, Vector<double> b) { return _mm_min_pd(b, a); }
inline bool has_nan(Vector<float> a, Vector<float> b, Vector<float> c, Vector<float> d) {
  return _mm_movemask_ps(_mm_or_ps(_mm_cmpunord_ps(a, b), _mm_cmpunord_ps(c, d))) != 0;
}
inline bool has_nan(Vector<double> a, Vector<double> b, Vector<double> c, Vector<double> d) {
  return _mm_movemask_pd(_mm_or_pd(_mm_cmpunord_pd(a, b), _mm_cmpunord_pd(c, d))) != 0;
}
#endif

// The product of the lower halves of lanes of 64 bits. xsimd has no such product.
#if defined(__AVX512F__)
using Words = __m512i;
inline Words product_of_words(Words a, Words b) { return _mm512_mul_epu32(a, b); }
#elif defined(__AVX2__)
using Words = __m256i;
inline Words product_of_words(Words a, Words b) { return _mm256_mul_epu32(a, b); }
#else
using Words = __m128i;
inline Words product_of_words(Words a, Words b) { return _mm_mul_epu32(a, b); }
#endif

}  // namespace
}  // namespace reel::REEL_ISA
