// trace/executors/dataflow/run_recorder.h — RunRecorder, which writes a RecordedRun while it
// happens.
#pragma once

#include <deque>
#include <limits>
#include <map>
#include <utility>

#include "reel/trace/executors/dataflow/busy_time.h"
#include "reel/trace/executors/dataflow/recorded_run.h"

namespace reel {

/// Of a run so many activations are kept: the first, and of what comes behind them the last.
struct RecordLimits {
  std::size_t first = std::numeric_limits<std::size_t>::max();
  std::size_t last = 0;
};

/// Its memory is that of what is kept, however long the run: an endless one can be recorded.
class RunRecorder {
 public:
  /// run: whose graph is there; nothing else is.
  RunRecorder(RecordedRun& run, RecordLimits limits);

  /// now: nanoseconds, of the steady clock; -> the same. Other times count from there.
  std::int64_t begin(std::int64_t now, int parallel_iterations);
  /// -> the number of the instance.
  int enter(const FrameInstance& instance);
  void leave(int instance);
  void iteration(int instance, std::int64_t number, bool begins, std::int64_t time);
  void note(const Activation& at);
  /// The error of that one is the run's, as far as is known.
  void fail(const Activation& at);
  /// So many activations are not handed in.
  void leave_out(std::size_t activations);
  /// The record is whole. message: of the error that the run threw, if it did.
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
  using Iteration = std::pair<int, std::int64_t>;  ///< of an instance

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
  std::size_t count_ = 0;        ///< of activations, all of them
  std::deque<Activation> tail_;  ///< the last ones
  std::deque<IterationEvent> tail_events_;
  std::map<Iteration, Open> open_;  ///< before what is in the tail
  std::vector<IterationEvent> ended_in_gap_;
  std::map<int, Known> instances_;
  std::vector<BusyTime> busy_;               ///< by frame
  std::vector<std::uint8_t> counts_bodies_;  ///< by node: a Switch, one of each loop
  int next_instance_ = 0;
  std::size_t forgets_at_ = 1 << 16;  ///< instances
};

/// The same run with fewer activations kept.
RecordedRun shortened(const RecordedRun& run, RecordLimits limits);

}  // namespace reel
