// tests/fuzz/random.h — Random, a generator with the same numbers on every machine.
#pragma once

#include <cstddef>
#include <cstdint>

namespace reel::fuzz {

/// SplitMix64. Source: Steele, Lea & Flood (2014), figure 17.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// Returns a number from 0 to n - 1.
  int below(std::size_t n) { return static_cast<int>(next() % n); }
  int between(int low, int high) { return low + below(static_cast<std::size_t>(high - low + 1)); }
  bool chance(int percent) { return below(100) < percent; }

 private:
  std::uint64_t state_;
};

}  // namespace reel::fuzz
