#include "reel/trace/executors/loop/monitor.h"

#include <chrono>
#include <thread>

namespace reel {
namespace {

constexpr auto kLooks = std::chrono::microseconds(100);

template <class Done>
bool look_until(Done done) {
  const auto end = std::chrono::steady_clock::now() + kLooks;
  do {
    constexpr int kAtOnce = 16;  // a check takes about 0.2 microseconds
    for (int i = 0; i < kAtOnce; ++i) {
      if (done()) return true;
      std::this_thread::yield();
    }
  } while (std::chrono::steady_clock::now() < end);
  return done();
}

}  // namespace

void Monitor::lock() {
  const auto has_it = [&] { return mutex_.try_lock(); };
  if (!has_it() && !look_until(has_it)) mutex_.lock();
}

void Monitor::notify() {
  changes_.fetch_add(1, std::memory_order_relaxed);
  if (asleep_) changed_.notify_all();
}

bool Monitor::spin_wait() {
  const std::uint32_t before = changes_.load(std::memory_order_relaxed);
  const auto has_news = [&] { return changes_.load(std::memory_order_relaxed) != before; };
  unlock();
  look_until(has_news);
  lock();
  return has_news();
}

void Monitor::wait() {
  const std::uint32_t before = changes_.load(std::memory_order_relaxed);
  if (spin_wait()) return;
  std::unique_lock held(mutex_, std::adopt_lock);
  ++asleep_;
  changed_.wait(held, [&] { return changes_.load(std::memory_order_relaxed) != before; });
  --asleep_;
  held.release();
}

}  // namespace reel
