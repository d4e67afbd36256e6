// frontend/loops/loop_recording.h — helpers of the eager and the traced form of loops.
#pragma once

#include <string>
#include <utility>

#include "reel/core/graph/graph_builder.h"
#include "reel/core/ops/loop/iteration_error.h"
#include "reel/core/runtime/cancellation.h"
#include "reel/core/runtime/random.h"
#include "reel/core/types/leaf.h"
#include "reel/frontend/loops/state/loop_state.h"
#include "reel/frontend/loops/state/state_dims.h"

namespace reel {

/// Marks a loop on the active tapes during its lifetime, so that exceptions end it too.
class MarkedLoop {
 public:
  /// name: for errors of the loop's gradient; empty for a branch.
  explicit MarkedLoop(const std::string& name = {}) {
    Recorder* tape = thread_mode.tape;
    try {
      for (; tape; tape = tape->outer) tape->mark(Recorder::Mark::loop_begins, name, 0);
    } catch (...) {
      end_on_tapes_up_to(tape);
      throw;
    }
  }
  ~MarkedLoop() { end_on_tapes_up_to(nullptr); }
  MarkedLoop(const MarkedLoop&) = delete;
  MarkedLoop& operator=(const MarkedLoop&) = delete;
  void begin_iteration(std::int64_t number) {
    check_cancellation();
    mark_tapes(Recorder::Mark::iteration_begins, {}, number);
  }

 private:
  /// last: the first tape that is left out. Never throws: marking an end cannot fail.
  static void end_on_tapes_up_to(const Recorder* last) {
    for (Recorder* tape = thread_mode.tape; tape != last; tape = tape->outer)
      tape->mark(Recorder::Mark::loop_ends, {}, 0);
  }
};

/// Runs a check and adds the iteration to its errors. The first iteration adds nothing, because the
/// message names the loop itself.
template <class Fn>
auto after_iteration(std::int64_t iteration, const std::string& what, Fn&& check) {
  return iteration == 0 ? check() : in_iteration(iteration, what, check);
}

/// Returns the state as new values on the active tapes, so that an eager loop sums cotangents in
/// the same order as a traced one. Used for the initial state, because body may also capture its
/// tensors, and for the final state, because its tensors may also be stacked.
TreeLeaves as_own_values(TreeLeaves state);

/// Ends the recording of a condition, a body or a branch. Gradients taken inside have recorded the
/// loops' forward runs again: this merges them with the first runs, because passes over the whole
/// graph do not enter bodies.
Ref<Graph> finish_part(GraphBuilder& builder, const Tensors& outputs);

/// Returns the loop's initial carries. In the body of another loop, Dims that this body made are
/// replaced: the loop may have no iteration, and returns them then.
inline Tensors initial_carries(const FormalState& formal, const TreeLeaves& initial) {
  const GraphBuilder& around = *thread_mode.builder;
  return formal.carries(around.outer() ? formal.with_fresh_dims(initial, around) : initial);
}

/// Returns the name of a recording for errors. loop: its title, as in: scan "encoder".
inline std::string body_of(const std::string& loop) { return "the body of " + loop; }
inline std::string condition_of(const std::string& loop) { return "the condition of " + loop; }

/// Returns the results of an iteration or branch that began at this block id. Tensors made before
/// `begin`, and tensors that occur twice in a state, become new values on the active tapes. In a
/// graph each of them has its own cotangent, which is summed with the cotangents inside first.
TreeLeaves own_terms(TreeLeaves terms, std::uint64_t begin);
TreeLeaves own_state(TreeLeaves state, std::uint64_t begin);

}  // namespace reel
