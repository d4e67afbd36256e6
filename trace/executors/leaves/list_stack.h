// trace/executors/leaves/list_stack.h — ListStack: a stack that is a list.
#pragma once

#include "reel/trace/executors/checkpoints/stack_list.h"
#include "reel/trace/executors/leaves/leaf_context.h"

namespace reel {

class ListStack {
 public:
  /// index: the index of the stack among the loop's.
  ListStack(const LeafContext& loop, std::size_t index)
      : loop_(loop),
        index_(index),
        list_(loop.attrs.trips.is_reverse, loop.attrs.stacks[index].memory_class()) {}

  /// Takes the term of an iteration.
  void put(Tensor term, std::int64_t position);
  /// Sets `out` to the list.
  void finish(Tensor& out, const Dim&) const;

 private:
  LeafContext loop_;
  std::size_t index_;
  StackList list_;
};

}  // namespace reel
