// frontend/loop_recording.h — what the eager and the traced form of loops share.
#pragma once

#include <string>
#include <utility>

#include "reel/core/cancellation.h"
#include "reel/core/graph_builder.h"
#include "reel/core/leaf.h"
#include "reel/core/ops/loop.h"
#include "reel/core/random.h"
#include "reel/frontend/loop_state.h"
#include "reel/frontend/state_dims.h"

namespace reel {

/// Marks a loop on the active tapes for as long as it lives: exceptions end it too.
class MarkedLoop {
 public:
  /// name: for errors of its gradient; a branch has none.
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
  /// last: the first tape that is left out. To mark an end never fails.
  static void end_on_tapes_up_to(const Recorder* last) {
    for (Recorder* tape = thread_mode.tape; tape != last; tape = tape->outer)
      tape->mark(Recorder::Mark::loop_ends, {}, 0);
  }
};

/// Runs a check whose message names the loop itself: in the first iteration there is no more to
/// say.
template <class Fn>
auto after_iteration(std::int64_t iteration, const std::string& what, Fn&& check) {
  return iteration == 0 ? check() : in_iteration(iteration, what, check);
}

/// A state that the active tapes tell apart from the tensors it was made of: a loop of eager mode
/// then adds up their cotangents as a traced one does. Going in, where a body may read them as well
/// (a carry and a capture); coming out, where they may be stacked too.
TreeLeaves as_own_values(TreeLeaves state);

/// Ends the recording of a condition, a body or a branch. A gradient that was taken inside has
/// asked for its loops again: those and the recorded ones become one here, since passes over the
/// whole graph do not enter bodies.
Ref<Graph> finish_part(GraphBuilder& builder, const Tensors& outputs);

/// Returns the place of a recording as errors name it. loop: its title, as in: scan "encoder".
inline std::string body_of(const std::string& loop) { return "the body of " + loop; }
inline std::string condition_of(const std::string& loop) { return "the condition of " + loop; }

/// What an iteration, or a branch, that began at this block id hands on, as values of its own where
/// the active tapes would take it for others: tensors from before, and (in a state) those that
/// stand there twice. In a graph each has a cotangent of its own, which joins those inside first.
TreeLeaves own_terms(TreeLeaves terms, std::uint64_t begin);
TreeLeaves own_state(TreeLeaves state, std::uint64_t begin);

}  // namespace reel
