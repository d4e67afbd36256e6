// trace/executors/leaves/checkpoint_stacks.h — CheckpointStacks: takes the checkpoints of a loop,
// in memory or in a file.
#pragma once

#include <utility>
#include <vector>

#include "reel/core/ops.h"
#include "reel/trace/executors/checkpoints/checkpoint_times.h"
#include "reel/trace/executors/checkpoints/stack_list.h"
#include "reel/trace/executors/leaves/leaf_context.h"
#include "reel/trace/executors/plan/base/plan_views.h"

namespace reel {

/// All checkpoint stacks of a loop. Each is a list with an element for each checkpoint: its step, a
/// carry or capture before an iteration, or a value that an op of the body makes.
class CheckpointStacks {
 public:
  CheckpointStacks(const LeafContext& loop, Spills& spills);

  /// Takes a checkpoint before the iteration at a position if one is due; drops earlier ones.
  ///
  /// bytes_of_carry(i): present size of a carry. body_input(k): input k of the body, which the
  /// checkpoint retains.
  template <class BytesOfCarry, class BodyInput>
  void before(std::int64_t position, BytesOfCarry&& bytes_of_carry, BodyInput&& body_input) {
    if (times_.takes_any()) take_due(position, bytes_of_carry, body_input);
  }
  /// Takes the term of stack `index`: a value that an op of the body made, if this iteration takes
  /// a checkpoint.
  void put(std::size_t index, Tensor term) {
    if (times_.now().takes && loop_.attrs.stacks[index].role != StackRole::checkpoint_step &&
        times_.source(index) < 0)
      lists_[index].keep(owned(std::move(term)));
  }
  /// Returns the list of stack `index`.
  Tensor finish(std::size_t index) const;

 private:
  template <class BytesOfCarry, class BodyInput>
  void take_due(std::int64_t position, BytesOfCarry& bytes_of_carry, BodyInput& body_input) {
    const std::int64_t steps = loop_.steps_before(position);
    times_.begin(steps, bytes_of_carry);
    if (times_.opens_file()) open_file();
    for (std::size_t j = 0; j < lists_.size(); ++j) {
      if (!loop_.attrs.stacks[j].is_checkpoint()) continue;
      for (int i = 0; i < times_.now().drops; ++i) lists_[j].thin();
      if (!times_.now().takes) continue;
      if (loop_.attrs.stacks[j].role == StackRole::checkpoint_step)
        lists_[j].keep(tensor({steps, loop_.is_chunked() ? loop_.chunks.size : 1}, {}, i64));
      else if (const int source = times_.source(j); source >= 0)
        lists_[j].keep(body_input(static_cast<std::size_t>(source)));
    }
  }
  void open_file();

  LeafContext loop_;
  CheckpointTimes times_;
  Spills& spills_;
  std::vector<StackList> lists_;  ///< by stack, if the loop has checkpoints
};

/// One of these stacks.
class CheckpointStack {
 public:
  CheckpointStack(CheckpointStacks& all, std::size_t index) : all_(&all), index_(index) {}

  void put(Tensor term, std::int64_t) { all_->put(index_, std::move(term)); }
  void finish(Tensor& out, const Dim&) const { out = all_->finish(index_); }

 private:
  CheckpointStacks* all_;
  std::size_t index_;
};

}  // namespace reel
