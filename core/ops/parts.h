// core/ops/parts.h — in how many parts, on several threads, an op is done.
#pragma once

#include <algorithm>
#include <cstdint>

#include "reel/core/parallel.h"

namespace reel {

/// In how many parts so much work is done, at most `most`, and at most four, as of products. Sizes
/// alone decide: results do not depend on the number of threads.
///
/// work: elements, each counted once for something as simple as a sum of two, which takes a quarter
/// of a nanosecond. A part is worth a task from some 15 microseconds on.
inline int parts_for(std::int64_t work, std::int64_t most) {
  constexpr std::int64_t kLeast = 1 << 16, kMostParts = 4;
  return static_cast<int>(
      std::clamp(work / kLeast, std::int64_t{1}, std::clamp(most, std::int64_t{1}, kMostParts)));
}

/// Calls fn(first, count) for parts of [0, size), which are work all together: what it computes
/// must not depend on where they begin.
template <class Fn>
void in_parts(std::int64_t size, std::int64_t work, Fn&& fn) {
  const int parts = parts_for(work, size);
  if (parts == 1 || threads() == 1) {
    fn(std::int64_t{0}, size);
    return;
  }
  parallel_for(parts, [&](int i) {
    const std::int64_t first = size * i / parts;
    fn(first, size * (i + 1) / parts - first);
  });
}

}  // namespace reel
