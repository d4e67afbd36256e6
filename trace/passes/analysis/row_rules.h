// trace/passes/analysis/row_rules.h — where the rows of an operand are in the result of an op.
#pragma once

#include <vector>

#include "reel/core/graph/graph.h"

namespace reel {

/// Returns the axis of rows in an op's outputs, or RowAxes::kMixed or kSummed. x: type of the op's
/// only input, or of the first if the others are offsets along other axes.   axis: of the rows in
/// x.
int rows_after(const OpRecord& record, const TensorType& x, int axis, const TensorType& result);

/// True for a maximum or minimum over an axis and, of booleans, any or all: the same value in
/// whatever order the axis is.
bool is_extreme_of(const OpRecord& record, int axis);

/// Returns attributes of a reshape to the dims of `result` with `axis` open, so that it takes any
/// number of rows. Returns null if another size is unknown.
AttrsRef with_open_axis(const TensorType& result, int axis);

}  // namespace reel
