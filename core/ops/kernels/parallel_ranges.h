// core/ops/kernels/parallel_ranges.h — splits an op's work into shares for several threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "reel/core/runtime/parallel.h"

namespace reel {

/// Returns the number of shares for an op's work: at most `most`, and at most four, as for
/// products. It depends on sizes alone: results do not depend on the number of threads.
///
/// work: number of elements, where the unit is the cost of adding two numbers, a quarter of a
/// nanosecond. A share is worth a task from about 15 microseconds on.
inline int shards_for(std::int64_t work, std::int64_t most) {
  constexpr std::int64_t kLeast = 1 << 16, kMaxShards = 4;
  return static_cast<int>(
      std::clamp(work / kLeast, std::int64_t{1}, std::clamp(most, std::int64_t{1}, kMaxShards)));
}

/// Calls fn(first, count) for shares of [0, size). work: of all shares together. Requires that
/// results do not depend on where shares begin.
template <class Fn>
void parallel_ranges(std::int64_t size, std::int64_t work, Fn&& fn) {
  const int shards = shards_for(work, size);
  if (shards == 1 || threads() == 1) {
    fn(std::int64_t{0}, size);
    return;
  }
  parallel_for(shards, [&](int i) {
    const std::int64_t first = size * i / shards;
    fn(first, size * (i + 1) / shards - first);
  });
}

}  // namespace reel
