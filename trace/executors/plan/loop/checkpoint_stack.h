// trace/executors/plan/loop/checkpoint_stack.h — CheckpointStack: a stack of checkpoints, in memory
// or in a file.
#pragma once

#include "reel/trace/executors/plan/loop/list_stack.h"

namespace reel {

/// A list with an element for each checkpoint. The loop keeps carries and captures before an
/// iteration; put() keeps values that an op of the body makes.
class CheckpointStack : public ListStack {
 public:
  CheckpointStack(const StackOfRun& stack, const CheckpointTimes& times)
      : ListStack(stack), times_(times) {}

  /// Stores later checkpoints in a file.
  void spill_to(const Ref<Spilled>& file) { list_.spill_to(file); }
  /// Drops every second checkpoint.
  void thin() { list_.thin(); }
  void keep(Tensor checkpoint) { list_.keep(std::move(checkpoint)); }

  void put(const Tensor& term, std::int64_t) {
    if (times_.now().takes && stack_.leaf().role != StackRole::checkpoint_step &&
        times_.source(stack_.index) < 0)
      keep(owned(term));
  }
  void finish(Tensor& out, const Dim& made) const;

 private:
  const CheckpointTimes& times_;
};

}  // namespace reel
