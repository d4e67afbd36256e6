// trace/executors/dataflow/recorded_run.h — RecordedRun, what happened in one run of a lowered
// graph, event by event.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "reel/trace/executors/dataflow/lowered.h"

namespace reel {

/// One execution of a frame: an inner loop has one for each iteration of the loop around it.
struct FrameInstance {
  int frame = 0;
  int parent = -1;                    ///< FrameInstance; -1 for that of frame 0
  std::int64_t parent_iteration = 0;  ///< of that
};

/// A node that fired: took its inputs and gave its outputs. A dead one computed nothing.
struct Activation {
  int node = 0;
  int instance = 0;  ///< FrameInstance
  std::int64_t iteration = 0;
  bool is_dead = false;
  int taken = -1;  ///< of a Switch or Merge: the port by which a live value left or came
  std::int64_t begin = 0, end = 0;  ///< nanoseconds since the run began
  int thread = 0;                   ///< 0 is the caller's
};

/// An iteration that began or was done with, when so many activations had ended.
struct IterationEvent {
  int instance = 0;
  std::int64_t iteration = 0;
  bool begins = true;
  std::size_t after = 0;  ///< activations
  std::int64_t time = 0;  ///< nanoseconds since the run began
};

/// Tokens are where an activation has put them and none has taken them: activations in the order
/// of this list, replayed one by one, are a run of the graph. Events of iterations say which are in
/// flight meanwhile.
struct RecordedRun {
  std::shared_ptr<const LoweredGraph> graph;
  int parallel_iterations = 0;  ///< of every loop; 0: as many as each says
  std::int64_t began = 0;       ///< nanoseconds, of the steady clock
  std::vector<FrameInstance> instances;
  std::vector<Activation> activations;  ///< in the order in which they ended
  std::vector<IterationEvent> iterations;
  bool has_failed = false;
};

/// How often a node ran, and how often it was dead.
struct ActivationCount {
  int live = 0, dead = 0;
  bool operator==(const ActivationCount&) const = default;
};
/// By node.
std::vector<ActivationCount> activation_counts(const RecordedRun& run);
/// The most iterations of a frame that were in flight at once, over all its instances.
int most_in_flight(const RecordedRun& run, int frame);

/// One line per activation.
std::ostream& operator<<(std::ostream& out, const RecordedRun& run);

}  // namespace reel
