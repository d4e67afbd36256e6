// eager/memory_counts.h — MemoryCounts: a thread's allocations and frees since it last published.
#pragma once

#include <cstdint>

#include "reel/core/types/block.h"

namespace reel {

/// Bytes by class, and in all. Each thread counts on its own, without an atomic access per block,
/// and publishes sums. Not thread-safe: one object per thread.
class MemoryCounts {
 public:
  static constexpr int kClasses = 5, kAll = kClasses;

  [[gnu::always_inline]] void add(MemoryClass what, std::int64_t bytes) {
    const int i = static_cast<int>(what);
    grow(i, bytes);
    grow(kAll, bytes);
    if (is_much(i) || is_much(kAll)) publish();
  }
  void move(MemoryClass from, MemoryClass to, std::int64_t bytes) {
    grow(static_cast<int>(from), -bytes);
    grow(static_cast<int>(to), bytes);
    if (is_much(static_cast<int>(from)) || is_much(static_cast<int>(to))) publish();
  }
  /// Adds the counts to the global ones and resets them.
  void publish();

 private:
  static constexpr std::int64_t kMaxUncountedBytes = 64 << 10;

  [[gnu::always_inline]] void grow(int i, std::int64_t bytes) {
    now_[i] += bytes;
    if (now_[i] > high_[i]) high_[i] = now_[i];
  }

  bool is_much(int i) const {
    return now_[i] > kMaxUncountedBytes || now_[i] < -kMaxUncountedBytes;
  }

  std::int64_t now_[kClasses + 1] = {}, high_[kClasses + 1] = {};
};
extern constinit thread_local MemoryCounts memory_counts;

}  // namespace reel
