// tests/recomputation.h — how many steps theory has run again.
#pragma once

#include <cstdint>

namespace reel {

/// n over k.
inline std::int64_t choose(std::int64_t n, std::int64_t k) {
  if (k < 0 || k > n) return 0;
  std::int64_t result = 1;
  for (std::int64_t i = 1; i <= k; ++i) result = result * (n - k + i) / i;
  return result;
}

/// Leaves that are run to come to others, to go back over so many with so many slots, that of the
/// first state included: r·l - C(s + r, r - 1), for the least r with C(s + r, s) >= l. Source:
/// Griewank & Walther (2000), "Algorithm 799: revolve", eq. 3.
inline std::int64_t least_advances(std::int64_t leaves, std::int64_t slots) {
  std::int64_t r = 0;
  while (choose(slots + r, slots) < leaves) ++r;
  return r * leaves - choose(slots + r, r - 1);
}

}  // namespace reel
