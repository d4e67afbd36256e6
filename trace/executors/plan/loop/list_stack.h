// trace/executors/plan/loop/list_stack.h — ListStack: a stack that is a list.
#pragma once

#include <utility>

#include "reel/core/ops/list/list.h"
#include "reel/trace/executors/checkpoints/stack_list.h"
#include "reel/trace/executors/plan/base/plan_views.h"
#include "reel/trace/executors/plan/loop/stack_of_run.h"

namespace reel {

/// Calls put(position, element) for the elements of a term: itself, or in a chunked loop one per
/// time step, in the order of the loop.
template <class Put>
void each_element(const PlannedLoop& loop, const Tensor& term, std::int64_t position, Put&& put) {
  if (!loop.loop().chunking.over_chunks) return put(position, owned(term));
  Tensors elements = list_elements(term);
  const std::int64_t first = loop.chunks.first(position), count = std::ssize(elements);
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t step = loop.loop().trips.is_reverse ? count - 1 - k : k;
    put(first + step, std::move(elements[static_cast<std::size_t>(step)]));
  }
}

class ListStack {
 public:
  explicit ListStack(const StackOfRun& stack)
      : stack_(stack), list_(stack.attrs().trips.is_reverse, stack.leaf().memory_class()) {}

  char* place(std::int64_t) const { return nullptr; }
  void put(const Tensor& term, std::int64_t position);
  void finish(Tensor& out, const Dim&) const;

 protected:
  StackOfRun stack_;
  StackList list_;
};

}  // namespace reel
