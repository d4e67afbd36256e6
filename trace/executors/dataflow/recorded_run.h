// trace/executors/dataflow/recorded_run.h — RecordedRun, the events of one run of a lowered graph.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reel/trace/executors/dataflow/lowered.h"

namespace reel {

/// One execution of a frame. An inner loop has one for each iteration of the outer loop.
struct FrameInstance {
  int frame = 0;
  int parent = -1;                    ///< index of a FrameInstance; -1 for frame 0
  std::int64_t parent_iteration = 0;  ///< of the parent
  /// True if a live value entered its loop. Otherwise the loop is in a branch that was not taken,
  /// or in a body that did not run: one iteration of dead tokens.
  bool has_run = false;
};

/// A node that fired: it took its inputs and gave its outputs. A dead one computed nothing; a
/// failed one gave nothing.
struct Activation {
  int node = 0;
  int instance = 0;  ///< index of a FrameInstance
  std::int64_t iteration = 0;
  bool is_dead = false;
  int taken = -1;                   ///< of a Switch or Merge: the port of the live value, or -1
  std::int64_t begin = 0, end = 0;  ///< nanoseconds since the run began
  int thread = 0;                   ///< 0 is the caller's
  bool has_failed = false;
};

/// The begin or end of an iteration.
struct IterationEvent {
  int instance = 0;
  std::int64_t iteration = 0;
  bool begins = true;
  std::size_t after = 0;  ///< number of kept activations that had ended
  std::int64_t time = 0;  ///< nanoseconds since the run began
};

/// How often a node ran live and dead.
struct ActivationCount {
  std::int64_t live = 0, dead = 0;
  bool operator==(const ActivationCount&) const = default;
};

/// A run of a lowered graph. Replaying its activations one by one in the order of the list is a
/// valid run: a token is at a node from the activation that sent it to the one that took it.
/// Iteration events tell which iterations are in flight.
///
/// A long run keeps only its first and last activations and their events (RunRecorder). Totals
/// cover the whole run.
struct RecordedRun {
  /// Total of a node; dead activations take no time.
  struct NodeTotal {
    ActivationCount count;
    std::int64_t nanoseconds = 0;
  };
  /// Total of a frame's executions that ran. `nanoseconds` is the time in which at least one node
  /// of some execution, or of a loop inside, was running; it excludes waiting for other loops.
  struct FrameTotal {
    std::int64_t executions = 0;
    std::int64_t iterations =
        0;                    ///< that began; in an execution's last one only the condition runs
    std::int64_t bodies = 0;  ///< iterations in which the body ran
    std::int64_t nanoseconds = 0;
  };
  /// Events that were not kept; they are missing before these indices. The events right behind it
  /// tell how the iterations in flight changed meanwhile.
  struct Gap {
    std::size_t activations = 0, iterations = 0;
    std::size_t left_out = 0;  ///< activations
  };
  /// The error that the run threw. at: the op that failed; nothing if none did.
  struct Failure {
    std::optional<Activation> at;
    std::size_t after = 0;  ///< number of earlier activations, kept or not
    std::string message;
  };

  std::shared_ptr<const LoweredGraph> graph;
  int parallel_iterations = 0;   ///< of every loop; 0: each loop's own limit
  std::int64_t began = 0;        ///< nanoseconds of the steady clock
  std::int64_t nanoseconds = 0;  ///< until its last activation ended
  std::vector<FrameInstance> instances;
  std::vector<Activation> activations;  ///< in the order in which they ended
  std::vector<IterationEvent> iterations;
  Gap gap;
  std::vector<NodeTotal> node_totals;    ///< by node
  std::vector<FrameTotal> frame_totals;  ///< by frame
  std::optional<Failure> failure;
};

/// Returns counts by node.
std::vector<ActivationCount> activation_counts(const RecordedRun& run);
/// Returns the most iterations of a frame that were in flight at once, over all its instances, as
/// far as events were kept.
int most_in_flight(const RecordedRun& run, int frame);

/// Returns an iteration's number behind the numbers of the iterations around it, such as 3.0.
/// Returns an empty string outside of loops.
std::string tag_of(const RecordedRun& run, int instance, std::int64_t iteration);
/// Prints one line per activation.
std::ostream& operator<<(std::ostream& out, const RecordedRun& run);

}  // namespace reel
