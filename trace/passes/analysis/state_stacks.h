// trace/passes/analysis/state_stacks.h — an analysis of stacks that hold the same states.
#pragma once

#include <vector>

#include "reel/core/ops/loop/loop.h"

namespace reel {

/// Two stacks of one carry. `before` holds the carry as each iteration receives it, `behind` as the
/// iteration leaves it. An element of `before` equals the element of `behind` of the previous
/// iteration, bit by bit.
struct StateStacks {
  std::size_t carry, before, behind;  ///< indices among the loop's carries and stacks
};

/// Returns the pairs of stacks that may share memory, one iteration apart: the residual of a state,
/// and the y that is the same state. A stack is in one pair at most.
///
/// A loop over chunks has the pairs of the loop within its chunks. Skips: two residuals, as
/// policies predict their bytes; loops that may end before their dim does, as their stacks have
/// zeros there; loops with entries that finish one by one, as y has zeros for finished entries;
/// lists, and stacks that are not in memory.
std::vector<StateStacks> state_stacks(const LoopAttrs& attrs);

}  // namespace reel
