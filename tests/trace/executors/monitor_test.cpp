// Threads that share a Monitor run one at a time, and both spinning and sleeping threads are
// notified.
#include "reel/trace/executors/loop/monitor.h"

#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <thread>

namespace reel {
namespace {

constexpr auto kLongerThanLooks = std::chrono::milliseconds(20);

TEST(MonitorTest, OneThreadHoldsItAtATime) {
  Monitor monitor;
  constexpr int kTimes = 20'000;
  std::int64_t count = 0;
  const auto add = [&] {
    for (int i = 0; i < kTimes; ++i) {
      const std::lock_guard lock(monitor);
      ++count;
    }
  };
  { const std::jthread a(add), b(add), c(add); }
  EXPECT_EQ(count, 3 * kTimes);
}

TEST(MonitorTest, WaitingThreadGetsALockThatIsHeldForLong) {
  Monitor monitor;
  bool is_held = true;
  std::unique_lock lock(monitor);
  const std::jthread other([&] {
    const std::lock_guard own(monitor);
    EXPECT_FALSE(is_held);
  });
  std::this_thread::sleep_for(kLongerThanLooks);
  is_held = false;
  lock.unlock();
}

TEST(MonitorTest, LookingOutEndsWithoutNews) {
  Monitor monitor;
  const std::unique_lock lock(monitor);
  EXPECT_FALSE(monitor.spin_wait());
}

TEST(MonitorTest, NotificationsReachSleepingAndSpinningThreads) {
  Monitor monitor;
  constexpr int kTurns = 200;
  int turn = 0;
  const auto take_turns = [&](int mine) {
    std::unique_lock lock(monitor);
    while (turn < kTurns) {
      if (turn % 2 == mine) {
        if (turn % 50 == mine) {  // the other thread falls asleep
          lock.unlock();
          std::this_thread::sleep_for(kLongerThanLooks);
          lock.lock();
        }
        ++turn;
        monitor.notify();
      } else if (mine) {
        monitor.wait();
      } else if (!monitor.spin_wait()) {
        continue;
      }
    }
  };
  {
    const std::jthread even([&] { take_turns(0); }), odd([&] { take_turns(1); });
  }
  EXPECT_EQ(turn, kTurns);
}

}  // namespace
}  // namespace reel
