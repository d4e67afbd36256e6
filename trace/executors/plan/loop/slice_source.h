// trace/executors/plan/loop/slice_source.h — SliceSource: provides the slices of one operand, an
// iteration at a time.
#pragma once

#include <variant>

#include "reel/trace/executors/loop/iterations.h"
#include "reel/trace/executors/plan/loop/dense_slices.h"
#include "reel/trace/executors/plan/loop/list_slices.h"
#include "reel/trace/executors/plan/loop/row_slices.h"
#include "reel/trace/executors/plan/loop/windowed_slices.h"

namespace reel {

/// Each kind has these functions:
///   set(body, input, position): sets an input of the body's plan to the slice at a position
///   slice(position):            returns the slice
using SliceSource = std::variant<DenseSlices, RowSlices, ListSlices, WindowedSlices>;

/// Returns the source of the loop's slices number `index`. Borrows `loop`, `slices` and `rows` for
/// the run.
///
/// slices: the operand that is sliced.
/// iterations: if the operand is a list, its length may lower the limit of iterations.
/// rows: the row block that runs; null if the loop is not cut into row blocks.
SliceSource make_slice_source(const PlannedLoop& loop, std::size_t index, const Tensor& slices,
                              Iterations& iterations, BlockRows* rows);

}  // namespace reel
