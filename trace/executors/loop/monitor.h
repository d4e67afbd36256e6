// trace/executors/loop/monitor.h — Monitor: a mutex with notification that waits briefly before
// sleeping.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace reel {

/// A mutex for critical sections of microseconds, with a condition to wait for. Threads poll for
/// about 100 microseconds before they sleep, because waking up is slow. Lock with
/// std::unique_lock<Monitor>.
///
/// Source: C. A. R. Hoare, Monitors: an operating system structuring concept, CACM 17(10), 1974.
class Monitor {
 public:
  void lock();
  void unlock() { mutex_.unlock(); }

  /// Notifies waiting threads of a change. Requires that the caller holds the lock.
  void notify();
  /// Releases the lock and polls for a notification, for about 100 microseconds; then locks again.
  /// Returns true if there was one.
  bool spin_wait();
  /// Releases the lock until another thread notifies; then locks again.
  void wait();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<std::uint32_t> changes_{0};  ///< notifications so far; written under the mutex
  int asleep_ = 0;
};

}  // namespace reel
