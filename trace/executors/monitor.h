// trace/executors/monitor.h — Monitor, what threads that work side by side share, and their news.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace reel {

/// A mutex that is held for microseconds, and news that threads wait for mostly not much longer:
/// they look for a while before they sleep, as who sleeps is slow to wake up. To be locked with
/// std::unique_lock<Monitor>.
///
/// Source: C. A. R. Hoare, Monitors: an operating system structuring concept, CACM 17(10), 1974.
class Monitor {
 public:
  void lock();
  void unlock() { mutex_.unlock(); }

  /// Something is new. By who holds it.
  void tell();
  /// Lets go until another thread tells, for some 100 microseconds at most -> whether one did.
  bool look_out();
  /// Lets go until another thread tells.
  void wait();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<std::uint32_t> changes_{0};  ///< written by who holds the mutex
  int asleep_ = 0;
};

}  // namespace reel
