// tests/failing_memory.h — FailingMemory, which makes one allocation of the process fail.
#pragma once

namespace reel {

/// While it lives, allocations are counted on all threads, and some find no memory.
///
/// Counts operator new, blocks of tensors that come from the system, the memory of plans, and
/// oneDNN's. Requires a program that links failing_memory.cpp. Under sanitizers, which take memory
/// over themselves, it counts operator new alone.
class FailingMemory {
 public:
  enum class Fails {
    once,      ///< the n-th allocation
    for_good,  ///< the n-th and all behind it
  };
  FailingMemory(long n, Fails fails);
  ~FailingMemory();
  FailingMemory(const FailingMemory&) = delete;
  FailingMemory& operator=(const FailingMemory&) = delete;

  /// True if an allocation has failed.
  bool has_failed() const;
};

}  // namespace reel
