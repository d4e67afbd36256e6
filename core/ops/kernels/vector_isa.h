// core/ops/kernels/vector_isa.h — vectors of a file's instruction set, with loads and stores of
// part of one.
//
// For *_isa.cpp files, which are compiled with -DREEL_ISA=sse42, avx2 and avx512 and the flags for
// it. All declarations are local to the file, so that the linker cannot use code for a newer
// processor on an older one.
#pragma once

// GCC 12 warns about the deliberately undefined registers in its own AVX-512 header (PR 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

#include <cstdint>
#include <xsimd/xsimd.hpp>

namespace reel::REEL_ISA {
namespace {

#if defined(__AVX512F__)
using Arch = xsimd::avx512f;
#elif defined(__AVX2__) && defined(__FMA__)
using Arch = xsimd::fma3<xsimd::avx2>;
#elif defined(__SSE4_2__)
using Arch = xsimd::sse4_2;
#else
#error \
    "compile this file with -msse4.2, -mavx2 -mfma, or -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma"
#endif

template <class T>
using Vector = xsimd::batch<T, Arch>;
template <class T>
inline constexpr int kLanes = static_cast<int>(Vector<T>::size);

template <class T>
inline Vector<T> load(const T* from) {
  return Vector<T>::load_unaligned(from);
}

/// Loads as many elements as a vector of doubles has, converted to doubles.
inline Vector<double> widen(const double* from) { return load(from); }
inline Vector<double> widen(const float* from) {
  // By intrinsics, if there are any: GCC 12 converts half a vector at a time.
#if defined(__AVX512F__)
  return _mm512_cvtps_pd(_mm256_loadu_ps(from));
#elif defined(__AVX2__)
  return _mm256_cvtps_pd(_mm_loadu_ps(from));
#else
  return _mm_set_pd(from[1], from[0]);
#endif
}

/// Returns a vector's first (part 0) or second half (part 1) as doubles. Of doubles, part 0 is all.
[[gnu::always_inline]] inline Vector<double> widen_part(const Vector<double>& x, int) { return x; }
[[gnu::always_inline]] inline Vector<double> widen_part(const Vector<float>& x, int part) {
#if defined(__AVX512F__)
  return _mm512_cvtps_pd(part ? _mm512_extractf32x8_ps(x.data, 1) : _mm512_castps512_ps256(x.data));
#elif defined(__AVX2__)
  return _mm256_cvtps_pd(part ? _mm256_extractf128_ps(x.data, 1) : _mm256_castps256_ps128(x.data));
#else
  return _mm_cvtps_pd(part ? _mm_movehl_ps(x.data, x.data) : x.data);
#endif
}
/// Returns two vectors of doubles as one of floats.
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

// Part of a vector: lanes beyond `count` are zeros, and are not stored.
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
#else
template <class T>
inline Vector<T> load_part(const T* from, std::int64_t count) {
  alignas(16) T padded[kLanes<T>] = {};
  for (std::int64_t i = 0; i < count; ++i) padded[i] = from[i];
  return Vector<T>::load_aligned(padded);
}
template <class T>
inline void store_part(T* to, Vector<T> values, std::int64_t count) {
  alignas(16) T padded[kLanes<T>];
  values.store_aligned(padded);
  for (std::int64_t i = 0; i < count; ++i) to[i] = padded[i];
}
#endif

/// Loads part of a vector. The remaining lanes are those of `rest`.
#if defined(__AVX512F__)
inline Vector<float> load_part_or(const float* from, std::int64_t count, Vector<float> rest) {
  return _mm512_mask_loadu_ps(rest, static_cast<__mmask16>((1u << count) - 1), from);
}
inline Vector<double> load_part_or(const double* from, std::int64_t count, Vector<double> rest) {
  return _mm512_mask_loadu_pd(rest, static_cast<__mmask8>((1u << count) - 1), from);
}
#elif defined(__AVX2__)
inline Vector<float> load_part_or(const float* from, std::int64_t count, Vector<float> rest) {
  return _mm256_blendv_ps(rest, load_part(from, count), _mm256_castsi256_ps(mask32(count)));
}
inline Vector<double> load_part_or(const double* from, std::int64_t count, Vector<double> rest) {
  return _mm256_blendv_pd(rest, load_part(from, count), _mm256_castsi256_pd(mask64(count)));
}
#else
template <class T>
inline Vector<T> load_part_or(const T* from, std::int64_t count, Vector<T> rest) {
  alignas(16) T lanes[kLanes<T>];
  rest.store_aligned(lanes);
  for (std::int64_t i = 0; i < count; ++i) lanes[i] = from[i];
  return Vector<T>::load_aligned(lanes);
}
#endif

/// Loads part of a vector; requires count > 0. The remaining lanes are copies of the first element,
/// so that they raise no exception of their own: 0 / 0 and log(0) would. The copy is between
/// registers, because these elements may just have been stored.
#if defined(__AVX512F__)
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
#else
template <class T>
inline Vector<T> load_repeated(const T* from, std::int64_t count) {
  alignas(16) T padded[kLanes<T>];
  for (std::int64_t i = 0; i < kLanes<T>; ++i) padded[i] = from[i < count ? i : 0];
  return Vector<T>::load_aligned(padded);
}
#endif

/// Writes the sums of the lanes of four vectors. Halves are added first, so each sum is a fixed
/// tree.
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
inline void sum_lanes(const Vector<float> (&x)[4], float* to) {
  const __m128 a = fold(x[0].data), b = fold(x[1].data), c = fold(x[2].data), d = fold(x[3].data);
  const __m128 ab =
      __builtin_shufflevector(a, b, 0, 4, 1, 5) + __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const __m128 cd =
      __builtin_shufflevector(c, d, 0, 4, 1, 5) + __builtin_shufflevector(c, d, 2, 6, 3, 7);
  _mm_storeu_ps(to, __builtin_shufflevector(ab, cd, 0, 1, 4, 5) +
                        __builtin_shufflevector(ab, cd, 2, 3, 6, 7));
}
inline void sum_lanes(const Vector<double> (&x)[4], double* to) {
  for (int i = 0; i < 4; i += 2) {
    const __m128d a = fold(x[i].data), b = fold(x[i + 1].data);
    _mm_storeu_pd(to + i,
                  __builtin_shufflevector(a, b, 0, 2) + __builtin_shufflevector(a, b, 1, 3));
  }
}
/// Returns the sum of one vector's lanes, with the same bits.
inline float sum_lanes(const Vector<float>& x) {
  const __m128 a = fold(x.data);
  return (a[0] + a[2]) + (a[1] + a[3]);
}
inline double sum_lanes(const Vector<double>& x) {
  const __m128d a = fold(x.data);
  return a[0] + a[1];
}

}  // namespace
}  // namespace reel::REEL_ISA
