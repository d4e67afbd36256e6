// trace/executors/plan/loop/slice_source.h — SliceSource: the slices that the body reads as one of
// its inputs.
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

/// Returns the source of the loop's slices `index`.
///
/// slices: the operand.
/// iterations: a list may lower the limit.
/// rows: of a row block; null for the whole loop.
SliceSource make_slice_source(const PlannedLoop& loop, std::size_t index, const Tensor& slices,
                              Iterations& iterations, BlockRows* rows);

}  // namespace reel
