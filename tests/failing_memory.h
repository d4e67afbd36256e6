// tests/failing_memory.h — FailingMemory, which makes one allocation of the process fail.
#pragma once

namespace reel {

/// Counts the allocations of all threads during its lifetime, and makes some of them fail.
///
/// Counts operator new, tensor blocks taken from the system, the memory of plans, and oneDNN's
/// allocations. Requires a program that links failing_memory.cpp. Under sanitizers, which replace
/// the allocator, it counts operator new only.
class FailingMemory {
 public:
  enum class Fails {
    once,      ///< the n-th allocation
    for_good,  ///< the n-th allocation and all later ones
  };
  FailingMemory(long n, Fails fails);
  ~FailingMemory();
  FailingMemory(const FailingMemory&) = delete;
  FailingMemory& operator=(const FailingMemory&) = delete;

  /// Returns true if an allocation has failed.
  bool has_failed() const;
};

}  // namespace reel
