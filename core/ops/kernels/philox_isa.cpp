// Philox4x32-10 for a block of counters: rounds as in philox.h, on vectors. Compiled once for each
// instruction set, with -DREEL_ISA=avx2 and the like.
#include "reel/core/ops/kernels/philox_table.h"
#include "reel/core/ops/kernels/vector_isa.h"

namespace reel::REEL_ISA {
namespace {

// One word in the lower half of each lane of 64 bits: a product of two words fills the lane. Upper
// halves are ignored.
typedef std::uint64_t Lanes __attribute__((vector_size(sizeof(Words)), may_alias, aligned(8)));

/// Multiplies the lower halves.
inline Lanes times(Lanes a, std::uint32_t b) {
  return reinterpret_cast<Lanes>(
      product_of_words(reinterpret_cast<Words>(a), reinterpret_cast<Words>(Lanes{} + b)));
}

inline void store_lower(Lanes x, std::uint32_t* to) {
  typedef std::uint32_t Halves
      __attribute__((vector_size(sizeof(Words) / 2), may_alias, aligned(4)));
  *reinterpret_cast<Halves*>(to) = __builtin_convertvector(x, Halves);
}

/// Sets the first kWords words of draws. Computes two vectors at a time, because a product has a
/// longer latency than the delay until the next one can start. Keys of rounds are vectors in
/// memory: to broadcast them in each step would take as long as the products.
template <int kWords>
void philox_block(std::uint64_t key, std::uint64_t high, const std::uint64_t* low,
                  std::uint32_t (*words)[kPhiloxBlock]) {
  constexpr int kCount = sizeof(Lanes) / sizeof(std::uint64_t), kTogether = 2, kRounds = 10;
  Lanes keys[kRounds][2];
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < kRounds; ++round) {
    keys[round][0] = Lanes{} + k0, keys[round][1] = Lanes{} + k1;
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  for (int first = 0; first < kPhiloxBlock; first += kTogether * kCount) {
    Lanes c[kTogether][4];
#pragma GCC unroll 2
    for (int v = 0; v < kTogether; ++v) {
      const Lanes at = *reinterpret_cast<const Lanes*>(low + first + v * kCount);
      c[v][0] = at, c[v][1] = at >> 32;
      c[v][2] = Lanes{} + high, c[v][3] = Lanes{} + (high >> 32);
    }
#pragma GCC unroll 10
    for (int round = 0; round < kRounds; ++round) {
#pragma GCC unroll 2
      for (int v = 0; v < kTogether; ++v) {
        Lanes* w = c[v];
        const Lanes p0 = times(w[0], 0xD2511F53), p1 = times(w[2], 0xCD9E8D57);
        w[0] = (p1 >> 32) ^ (w[1] ^ keys[round][0]);
        w[1] = p1;
        w[2] = (p0 >> 32) ^ (w[3] ^ keys[round][1]);
        w[3] = p0;
      }
    }
#pragma GCC unroll 2
    for (int v = 0; v < kTogether; ++v)
#pragma GCC unroll 4
      for (int w = 0; w < kWords; ++w) store_lower(c[v][w], words[w] + first + v * kCount);
  }
}

// ---- Uniform numbers ----------------------------------------------------------------------------
//
// low + span · unit is rounded after the product and after the sum, with or without instructions
// for both: the products lie in memory between two loops. A sum may be rounded up to `high`, which
// does not belong to the interval.

template <class T>
void shift(const T* scaled, T low, T high, T* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const T value = low + scaled[i];
    out[i] = value < high ? value : low;
  }
}

void uniform_f32(const std::uint32_t (*words)[kPhiloxBlock], float low, float span, float high,
                 float* out, std::int64_t count) {
  float scaled[kPhiloxBlock];
  for (int i = 0; i < kPhiloxBlock; ++i)
    scaled[i] = span * (static_cast<float>(static_cast<std::int32_t>(words[0][i] >> 8)) * 0x1p-24f);
  shift(scaled, low, high, out, count);
}

/// The 53 bits of a number are 32 of one word and 21 of the next: their sum is exact.
void uniform_f64(const std::uint32_t (*words)[kPhiloxBlock], double low, double span, double high,
                 double* out, std::int64_t count) {
  double scaled[kPhiloxBlock];
  for (int i = 0; i < kPhiloxBlock; ++i) {
    const double upper =
        static_cast<double>(static_cast<std::int32_t>(words[0][i] ^ 0x80000000)) + 0x1p31;
    const double lower = static_cast<double>(static_cast<std::int32_t>(words[1][i] >> 11));
    scaled[i] = span * (upper * 0x1p-32 + lower * 0x1p-53);
  }
  shift(scaled, low, high, out, count);
}

// ---- Normal numbers -----------------------------------------------------------------------------
//
// One number of each pair of Box & Muller (1958): √(-2 ln u) cos(2π v). This file is compiled
// without instructions that add to a product, so that all instruction sets have the same bits.
// Branches would keep the loop from becoming vectors. Coefficients of the logarithm, sine and
// cosine: Moshier, Cephes 2.2, logf and sinf; their errors are below 2^-23.

/// Returns -2 ln((word + 1/2) 2^-32), at least 0. The argument is rounded to 24 bits.
inline float twice_information(std::uint32_t word) {
  const float u = static_cast<float>(static_cast<std::int32_t>(word >> 16)) * 0x1p-16f +
                  (static_cast<float>(static_cast<std::int32_t>(word & 0xffff)) + 0.5f) * 0x1p-32f;
  constexpr std::int32_t kRootOfHalf = 0x3f3504f3;
  const std::int32_t bits = __builtin_bit_cast(std::int32_t, u);
  const std::int32_t power = (bits - kRootOfHalf) >> 23;
  // From √(1/2) to √2, less 1.
  const float x = __builtin_bit_cast(float, bits - (power << 23)) - 1;
  const float exponent = static_cast<float>(power);
  const float square = x * x;
  float p = 7.0376836292e-2f;
  p = p * x - 1.1514610310e-1f;
  p = p * x + 1.1676998740e-1f;
  p = p * x - 1.2420140846e-1f;
  p = p * x + 1.4249322787e-1f;
  p = p * x - 1.6668057665e-1f;
  p = p * x + 2.0000714765e-1f;
  p = p * x - 2.4999993993e-1f;
  p = p * x + 3.3333331174e-1f;
  const float rest = p * x * square - 2.12194440e-4f * exponent - 0.5f * square;
  const auto result = __builtin_bit_cast(std::int32_t, -2 * (rest + x + 0.693359375f * exponent));
  return __builtin_bit_cast(float, result & ~(result >> 31));  // rounding may make it negative
}

/// Returns cos(2π word 2^-32).
inline float cosine_of_turn(std::uint32_t word) {
  const std::uint32_t quarter = (word + 0x20000000u) >> 30;
  const float angle = static_cast<float>(static_cast<std::int32_t>(word - (quarter << 30))) *
                      1.46291807926716e-9f;  // 2π 2^-32
  const float square = angle * angle;
  const float sine = ((-1.9515295891e-4f * square + 8.3321608736e-3f) * square - 1.6666654611e-1f) *
                         square * angle +
                     angle;
  const float cosine =
      ((2.443315711809948e-5f * square - 1.388731625493765e-3f) * square + 4.166664568298827e-2f) *
          square * square -
      0.5f * square + 1;
  const std::uint32_t is_sine = 0 - (quarter & 1);
  const std::uint32_t size = (__builtin_bit_cast(std::uint32_t, sine) & is_sine) |
                             (__builtin_bit_cast(std::uint32_t, cosine) & ~is_sine);
  const std::uint32_t sign = (quarter ^ quarter >> 1) & 1;  // negative in quarters 1 and 2
  return __builtin_bit_cast(float, size ^ sign << 31);
}

void normal_f32(const std::uint32_t (*words)[kPhiloxBlock], float* out, std::int64_t count) {
  float numbers[kPhiloxBlock];
  for (int i = 0; i < kPhiloxBlock; ++i)
    numbers[i] = __builtin_sqrtf(twice_information(words[0][i])) * cosine_of_turn(words[2][i]);
  for (std::int64_t i = 0; i < count; ++i) out[i] = numbers[i];
}

}  // namespace

constinit const PhiloxTable philox_table{
    .block = philox_block<4>,
    .one_word = philox_block<1>,
    .two_words = philox_block<2>,
    .three_words = philox_block<3>,
    .uniform_f32 = uniform_f32,
    .uniform_f64 = uniform_f64,
    .normal_f32 = normal_f32,
};

}  // namespace reel::REEL_ISA
