#include "reel/trace/executors/plan/wavefront.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "reel/core/parallel.h"

namespace reel {
namespace {

class Wavefront {
 public:
  explicit Wavefront(std::span<LoopRun* const> loops) {
    for (LoopRun* loop : loops) states_.push_back({loop, 0, loop->has_next(), false});
  }

  /// What each thread does: chunks, until there are none.
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      State* const next = find_ready();
      if (has_failed_ || (!next && !any_runs())) return;
      if (!next) {
        wait(lock);
        continue;
      }
      next->runs = true;
      lock.unlock();
      try {
        next->loop->advance();
      } catch (...) {
        lock.lock();
        has_failed_ = true;
        tell();
        throw;
      }
      lock.lock();
      next->runs = false;
      next->steps = next->loop->steps_done();
      next->has_next = next->loop->has_next();
      tell();
    }
  }

 private:
  /// Until another thread tells: mostly not long, as loops of equal cost keep step, and a thread
  /// that sleeps is slow to wake up.
  void wait(std::unique_lock<std::mutex>& lock) {
    const std::uint32_t before = changes_.load(std::memory_order_relaxed);
    lock.unlock();
    for (int i = 0; i < kSpins && changes_.load(std::memory_order_relaxed) == before; ++i)
      std::this_thread::yield();
    lock.lock();
    changed_.wait(lock, [&] { return changes_.load(std::memory_order_relaxed) != before; });
  }
  void tell() {
    changes_.fetch_add(1, std::memory_order_relaxed);
    changed_.notify_all();
  }

  struct State {
    LoopRun* loop;
    std::int64_t steps;  ///< that are done
    bool has_next, runs;
  };

  /// The last loop that can go on: what it reads was made a moment ago.
  State* find_ready() {
    std::int64_t stacked = INT64_MAX;  // by all loops before it
    State* ready = nullptr;
    for (State& state : states_) {
      if (state.has_next && !state.runs && state.loop->steps_after_next() <= stacked)
        ready = &state;
      stacked = std::min(stacked, state.steps);
    }
    return ready;
  }
  bool any_runs() const {
    return std::any_of(states_.begin(), states_.end(), [](const State& s) { return s.runs; });
  }

  static constexpr int kSpins = 300;  // some 100 microseconds

  std::mutex mutex_;
  std::atomic<std::uint32_t> changes_{0};  // written under the mutex
  std::condition_variable changed_;
  std::vector<State> states_;
  bool has_failed_ = false;
};

}  // namespace

void run_wavefront(std::span<LoopRun* const> loops) {
  Wavefront wavefront(loops);
  parallel_for(static_cast<int>(loops.size()), [&](int) { wavefront.work(); });
}

}  // namespace reel
