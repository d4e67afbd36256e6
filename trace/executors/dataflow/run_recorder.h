// trace/executors/dataflow/run_recorder.h — RunRecorder, which writes a RecordedRun during a run.
#pragma once

#include <deque>
#include <limits>
#include <map>
#include <utility>

#include "reel/trace/executors/dataflow/busy_time.h"
#include "reel/trace/executors/dataflow/recorded_run.h"

namespace reel {

/// Numbers of activations that are kept: the first ones, and the last ones behind them.
struct RecordLimits {
  std::size_t first = std::numeric_limits<std::size_t>::max();
  std::size_t last = 0;
};

/// Records a run. Memory depends on the limits, not on the length of the run, so an endless run can
/// be recorded. Not thread-safe.
class RunRecorder {
 public:
  /// run: must have its graph and nothing else; must outlive the recorder.
  RunRecorder(RecordedRun& run, RecordLimits limits);

  /// Starts the record and returns `now`: nanoseconds of the steady clock. Later times count from
  /// it.
  std::int64_t begin(std::int64_t now, int parallel_iterations);
  /// Adds an instance of a frame and returns its number.
  int enter(const FrameInstance& instance);
  void leave(int instance);
  void iteration(int instance, std::int64_t number, bool begins, std::int64_t time);
  void note(const Activation& at);
  /// Marks the activation as the cause of the run's error. A later call replaces it.
  void fail(const Activation& at);
  /// Counts activations that are not passed to note().
  void leave_out(std::size_t activations);
  /// Completes the record; must be called last. message: of the error that the run threw, if it
  /// threw.
  void finish(std::optional<std::string> message = {});

 private:
  struct Known {
    FrameInstance is;
    bool is_open;
  };
  struct Open {
    std::int64_t time;
    bool is_of_first;  ///< its begin is among the first events
  };
  using Iteration = std::pair<int, std::int64_t>;  ///< instance and iteration

  void note_loop(const Activation& at);
  void begin_run(int instance);
  bool is_at_first() const { return tail_.empty() && !run_.gap.left_out; }
  void keep(const Activation& at);
  void drop_first_of_tail();
  void drop_events();
  void drop(const IterationEvent& event);
  void forget_instances();
  std::map<int, Known> instances_of_what_is_kept() const;
  void renumber_instances();

  RecordedRun& run_;
  RecordLimits limits_;
  std::size_t count_ = 0;        ///< of all activations
  std::deque<Activation> tail_;  ///< the last activations
  std::deque<IterationEvent> tail_events_;
  std::map<Iteration, Open> open_;  ///< iterations in flight before the tail
  std::vector<IterationEvent> finished_in_gap_;
  std::map<int, Known> instances_;
  std::vector<BusyTime> busy_;               ///< by frame
  std::vector<std::uint8_t> counts_bodies_;  ///< by node: one Switch of each loop
  int next_instance_ = 0;
  std::size_t forgets_at_ = 1 << 16;  ///< number of instances
};

/// Returns the same run with fewer activations kept.
RecordedRun shortened(const RecordedRun& run, RecordLimits limits);

}  // namespace reel
