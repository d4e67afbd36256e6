// trace/executors/dataflow/recorded_run.h — RecordedRun, what happened in one run of a lowered
// graph, event by event.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reel/trace/executors/dataflow/lowered.h"

namespace reel {

/// One execution of a frame: an inner loop has one for each iteration of the loop around it.
struct FrameInstance {
  int frame = 0;
  int parent = -1;                    ///< FrameInstance; -1 for that of frame 0
  std::int64_t parent_iteration = 0;  ///< of that
  /// A live value came into its loop. Else it is of a branch that was not taken, or of a body that
  /// did not run: one iteration of dead tokens.
  bool has_run = false;
};

/// A node that fired: took its inputs and gave its outputs. A dead one computed nothing; one that
/// failed gave nothing.
struct Activation {
  int node = 0;
  int instance = 0;  ///< FrameInstance
  std::int64_t iteration = 0;
  bool is_dead = false;
  int taken = -1;  ///< of a Switch or Merge: the port by which a live value left or came
  std::int64_t begin = 0, end = 0;  ///< nanoseconds since the run began
  int thread = 0;                   ///< 0 is the caller's
  bool has_failed = false;
};

/// An iteration that began or was done with, when so many activations had ended.
struct IterationEvent {
  int instance = 0;
  std::int64_t iteration = 0;
  bool begins = true;
  std::size_t after = 0;  ///< activations, of those that are kept
  std::int64_t time = 0;  ///< nanoseconds since the run began
};

/// How often a node ran, and how often it was dead.
struct ActivationCount {
  std::int64_t live = 0, dead = 0;
  bool operator==(const ActivationCount&) const = default;
};

/// Tokens are where an activation has put them and none has taken them: activations in the order
/// of this list, replayed one by one, are a run of the graph. Events of iterations say which are in
/// flight meanwhile.
///
/// Of a long run (RunRecorder) the first and the last activations are kept, and what is about
/// them; the totals are of the whole run.
struct RecordedRun {
  /// What a node took, dead activations not counted.
  struct NodeTotal {
    ActivationCount count;
    std::int64_t nanoseconds = 0;
  };
  /// What the executions of a frame took that have run: the time in which a node of some was at
  /// work, or of a loop inside, once. While it waits for another loop it takes nothing.
  struct FrameTotal {
    std::int64_t executions = 0;
    std::int64_t iterations =
        0;                    ///< that began; in the last of an execution only the condition runs
    std::int64_t bodies = 0;  ///< iterations in which the body ran
    std::int64_t nanoseconds = 0;
  };
  /// What is not kept: it is missing before these places of the lists. Events behind say what of
  /// the iterations in flight changed meanwhile.
  struct Gap {
    std::size_t activations = 0, iterations = 0;
    std::size_t left_out = 0;  ///< activations
  };
  /// The error that the run threw; at: who failed, if any op did.
  struct Failure {
    std::optional<Activation> at;
    std::size_t after = 0;  ///< activations, left out ones too
    std::string message;
  };

  std::shared_ptr<const LoweredGraph> graph;
  int parallel_iterations = 0;   ///< of every loop; 0: as many as each says
  std::int64_t began = 0;        ///< nanoseconds, of the steady clock
  std::int64_t nanoseconds = 0;  ///< until its last activation ended
  std::vector<FrameInstance> instances;
  std::vector<Activation> activations;  ///< in the order in which they ended
  std::vector<IterationEvent> iterations;
  Gap gap;
  std::vector<NodeTotal> node_totals;    ///< by node
  std::vector<FrameTotal> frame_totals;  ///< by frame
  std::optional<Failure> failure;
};

/// By node.
std::vector<ActivationCount> activation_counts(const RecordedRun& run);
/// The most iterations of a frame that were in flight at once, over all its instances, as far as
/// they are kept.
int most_in_flight(const RecordedRun& run, int frame);

/// An iteration, behind those of the loops around: 3.0; empty outside of loops.
std::string tag_of(const RecordedRun& run, int instance, std::int64_t iteration);
/// One line per activation.
std::ostream& operator<<(std::ostream& out, const RecordedRun& run);

}  // namespace reel
