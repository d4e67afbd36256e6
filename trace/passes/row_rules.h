// trace/passes/row_rules.h — what ops do with the rows of what they take.
#pragma once

#include <vector>

#include "reel/core/graph.h"

namespace reel {

/// Where the rows of an op's only input, which has them at `axis`, are in its outputs; or one of
/// RowAxes' kinds. (Of an op that moves elements along other axes by offsets: of its first input.)
int rows_after(const OpRecord& record, const TensorType& x, int axis, const TensorType& result);

/// Attributes of a reshape to the dims of `result`, one axis left open: of one with any number of
/// rows there. None where another size is not known.
AttrsRef with_open_axis(const TensorType& result, int axis);

}  // namespace reel
