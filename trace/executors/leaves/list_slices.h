// trace/executors/leaves/list_slices.h — list_slices: the slices of a loop that are elements of a
// list.
#pragma once

#include "reel/trace/executors/leaves/leaf_context.h"

namespace reel {

/// Returns the slices that iterations read from a list, by position; of a chunked loop, the part of
/// the list for each chunk.
///
/// index: the index of the slices among the loop's.
/// limit: maximum number of iterations, which the list's length may lower.
Tensors list_slices(const LeafContext& loop, std::size_t index, const Tensor& list,
                    std::int64_t& limit);

}  // namespace reel
