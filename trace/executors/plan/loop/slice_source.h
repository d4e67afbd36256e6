// trace/executors/plan/loop/slice_source.h — SliceSource: provides the slices of one operand, an
// iteration at a time.
#pragma once

#include <variant>

#include "reel/trace/executors/leaves/residual_slices.h"
#include "reel/trace/executors/plan/loop/dense_slices.h"
#include "reel/trace/executors/plan/loop/row_slices.h"

namespace reel {

/// Slices that are elements of a list, or the lists that a chunked loop reads.
class ListSlices {
 public:
  /// elements: by position.
  explicit ListSlices(Tensors elements) : elements_(std::move(elements)) {}

  void set(Plan& body, std::size_t input, std::int64_t position) const {
    body.set_input(input, slice(position));
  }
  const Tensor& slice(std::int64_t position) const {
    return elements_[static_cast<std::size_t>(position)];
  }

 private:
  Tensors elements_;
};

/// Residuals with a window of time steps in memory. Elements are read in place.
class WindowedSlices : public ResidualSlices {
 public:
  using ResidualSlices::ResidualSlices;

  /// Sets an input of the body's plan to the slice at a position; of a chunked loop, to the slices
  /// of a chunk.
  void set(Plan& body, std::size_t input, std::int64_t position) const;
};

/// Each kind has these functions:
///   set(body, input, position): sets an input of the body's plan to the slice at a position
///   slice(position):            returns the slice
using SliceSource = std::variant<DenseSlices, RowSlices, ListSlices, WindowedSlices>;

/// Returns the source of the loop's slices number `index`. Borrows `loop`, `slices` and `rows` for
/// the run.
///
/// run: the run of the loop.   slices: the operand that is sliced.
/// limit: maximum number of iterations. If the operand is a list, its length may lower it.
/// rows: the row block that runs; null if the loop is not cut into row blocks.
SliceSource make_slice_source(const PlannedLoop& loop, const LeafContext& run, std::size_t index,
                              const Tensor& slices, std::int64_t& limit, BlockRows* rows);

}  // namespace reel
