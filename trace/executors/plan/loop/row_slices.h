// trace/executors/plan/loop/row_slices.h — RowSlices: the batch rows of a row block in the slices
// of a tensor.
#pragma once

#include "reel/trace/executors/plan/loop/block_rows.h"
#include "reel/trace/executors/plan/loop/place_input.h"

namespace reel {

/// The rows of a row block in the slices of a tensor.
class RowSlices {
 public:
  /// index, type: the index of the slices among the loop's, and their type in the row block.
  RowSlices(BlockRows& rows, std::size_t index, const TensorType& type)
      : rows_(&rows), index_(index), type_(&type) {}

  void set(Plan& body, std::size_t input, std::int64_t position) const {
    place_input(body, input, rows_->slice(index_, position));
  }
  Tensor slice(std::int64_t position) const {
    return placed(slice_type(*type_), rows_->slice(index_, position));
  }

 private:
  BlockRows* rows_;
  std::size_t index_;
  const TensorType* type_;
};

}  // namespace reel
