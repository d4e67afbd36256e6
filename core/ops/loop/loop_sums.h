// core/ops/loop/loop_sums.h — append_to_sum, the addition that a loop's sum does in an iteration.
#pragma once

#include "reel/core/graph/graph.h"

namespace reel {

/// Appends the record that adds a term to a sum's total, of the term's type. Returns the next
/// total.
ValueId append_to_sum(Graph& to, ValueId total, ValueId term);

}  // namespace reel
