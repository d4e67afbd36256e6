// tests/recomputation.h — the least number of iterations that reversal with checkpoints runs again.
#pragma once

#include <cstdint>

namespace reel {

/// Returns the binomial coefficient n over k.
inline std::int64_t choose(std::int64_t n, std::int64_t k) {
  if (k < 0 || k > n) return 0;
  std::int64_t result = 1;
  for (std::int64_t i = 1; i <= k; ++i) result = result * (n - k + i) / i;
  return result;
}

/// Returns the least number of iterations that reversing `leaves` iterations with `slots`
/// checkpoints runs again; the loop's initial state takes a slot. The value is r·l - C(s + r, r -
/// 1) for the least r with C(s + r, s) >= l. Source: Griewank & Walther (2000), "Algorithm 799:
/// revolve", eq. 3.
inline std::int64_t least_advances(std::int64_t leaves, std::int64_t slots) {
  std::int64_t r = 0;
  while (choose(slots + r, slots) < leaves) ++r;
  return r * leaves - choose(slots + r, r - 1);
}

}  // namespace reel
