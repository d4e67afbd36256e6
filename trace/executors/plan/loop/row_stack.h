// trace/executors/plan/loop/row_stack.h — RowStack: the batch rows of a row block in a stack.
#pragma once

#include "reel/trace/executors/plan/base/plan_views.h"
#include "reel/trace/executors/plan/loop/block_rows.h"

namespace reel {

/// The rows of a row block in a stack. Writes terms to their places in the whole stack.
class RowStack {
 public:
  /// index: the index of the stack among the loop's.
  RowStack(BlockRows& rows, std::size_t index) : rows_(&rows), index_(index) {}

  char* place(std::int64_t position) const { return rows_->stack(index_, position); }
  void put(const Tensor& term, std::int64_t position) const {
    copy_elements(place(position), term);
  }
  void finish(Tensor&, const Dim&) const {}  // BlockRows writes the zeros

 private:
  BlockRows* rows_;
  std::size_t index_;
};

}  // namespace reel
