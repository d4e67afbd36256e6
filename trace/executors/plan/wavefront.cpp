#include "reel/trace/executors/plan/wavefront.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "reel/core/runtime/parallel.h"
#include "reel/trace/executors/loop/monitor.h"

namespace reel {
namespace {

class Wavefront {
 public:
  explicit Wavefront(std::span<LoopRun* const> loops) {
    for (LoopRun* loop : loops) states_.push_back({loop, 0, loop->has_next(), false});
  }

  /// Runs chunks until there are none.
  void work() {
    std::unique_lock lock(monitor_);
    for (;;) {
      State* const next = find_ready();
      if (has_failed_ || (!next && !any_runs())) return;
      if (!next) {
        monitor_.wait();
        continue;
      }
      next->runs = true;
      lock.unlock();
      try {
        next->loop->advance();
      } catch (...) {
        lock.lock();
        has_failed_ = true;
        monitor_.notify();
        throw;
      }
      lock.lock();
      next->runs = false;
      next->steps = next->loop->steps_done();
      next->has_next = next->loop->has_next();
      monitor_.notify();
    }
  }

 private:
  struct State {
    LoopRun* loop;
    std::int64_t steps;  ///< done so far
    bool has_next, runs;
  };

  /// Returns the last loop that can run a chunk: its inputs were made most recently, and are in the
  /// cache.
  State* find_ready() {
    std::int64_t stacked = INT64_MAX;  // by all earlier loops
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

  Monitor monitor_;
  std::vector<State> states_;
  bool has_failed_ = false;
};

}  // namespace

void run_wavefront(std::span<LoopRun* const> loops) {
  Wavefront wavefront(loops);
  parallel_for(static_cast<int>(loops.size()), [&](int) { wavefront.work(); });
}

}  // namespace reel
