// trace/executors/plan/loop/growing_stack.h — GrowingStack: a stack of unknown length in memory.
#pragma once

#include "reel/core/runtime/memory.h"
#include "reel/trace/executors/leaves/leaf_context.h"
#include "reel/trace/executors/plan/base/plan_views.h"

namespace reel {

/// Terms of equal size at stable addresses: each chunk of memory holds as many as all chunks
/// before it.
class GrowingStack {
 public:
  /// index: the index of the stack among the loop's.   term: type of a term.
  GrowingStack(const LeafContext& loop, std::size_t index, const TensorType& term)
      : loop_(loop), index_(index), term_(term), bytes_(term.bytes()) {}

  /// Requires that `position` is at most the number of terms so far.
  char* place(std::int64_t position);
  void put(const Tensor& term, std::int64_t position) { copy_elements(place(position), term); }
  /// Makes the result, with zeros behind the iterations.
  void finish(Tensor& out, const Dim& made) const;

 private:
  void copy_to(char* to, std::int64_t count) const;

  static constexpr std::int64_t kFirst = 16;
  LeafContext loop_;
  std::size_t index_;
  TensorType term_;
  std::int64_t bytes_;
  Tensors chunks_;
};

}  // namespace reel
