// trace/executors/leaves/tensor_stack.h — TensorStack: a stack in memory whose terms only a run
// tells.
#pragma once

#include <utility>

#include "reel/trace/executors/leaves/leaf_context.h"
#include "reel/trace/executors/loop/stack_writer.h"

namespace reel {

/// A stack of tensors in memory, for executors that do not know the type of a term before the run.
class TensorStack {
 public:
  /// index: the index of the stack among the loop's.
  TensorStack(const LeafContext& loop, std::size_t index);

  /// Takes the term of an iteration. Throws ShapeError if terms have different types.
  void put(Tensor term, std::int64_t position);
  /// Sets `out` to the stack, with zeros behind the iterations. made: the dim that the loop makes,
  /// if any.
  void finish(Tensor& out, const Dim& made);

 private:
  LeafContext loop_;
  std::size_t index_;
  StackWriter writer_;
};

}  // namespace reel
