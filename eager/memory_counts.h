// eager/memory_counts.h — MemoryCounts, what a thread has allocated and freed since it last said
// so.
#pragma once

#include <cstdint>

#include "reel/core/block.h"

namespace reel {

/// Bytes by class, and of all. A thread counts for itself, without an atomic access for each block,
/// and publishes what came together.
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
  void publish();

 private:
  static constexpr std::int64_t kMost = 64 << 10;

  [[gnu::always_inline]] void grow(int i, std::int64_t bytes) {
    now_[i] += bytes;
    if (now_[i] > high_[i]) high_[i] = now_[i];
  }

  bool is_much(int i) const { return now_[i] > kMost || now_[i] < -kMost; }

  std::int64_t now_[kClasses + 1] = {}, high_[kClasses + 1] = {};
};
extern constinit thread_local MemoryCounts memory_counts;

}  // namespace reel
