// core/ops/kernels/philox.h — the random number generator of all draws.
#pragma once

#include <array>
#include <cstdint>

namespace reel {

/// Returns 128 random bits for a key and a counter, by Philox4x32-10. Source: Salmon, Moraes, Dror
/// & Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
inline std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t high,
                                           std::uint64_t low) {
  std::array<std::uint32_t, 4> c{
      static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32),
      static_cast<std::uint32_t>(high), static_cast<std::uint32_t>(high >> 32)};
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c[0],
                        p1 = std::uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

// Draws and folded keys use different counters: the top bit of the high word distinguishes them.
// Below it are the attempts of a draw that is repeated, and below those the numbers of draws.
inline constexpr int kAttemptBits = 40;
inline constexpr std::uint64_t kFold = std::uint64_t{1} << 63;

}  // namespace reel
