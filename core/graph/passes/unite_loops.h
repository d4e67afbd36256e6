// core/graph/passes/unite_loops.h — two loops over the same operands as one.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "reel/core/ops/loop/loop.h"

namespace reel {

/// A loop that computes the results of two loops.
struct UnitedLoops {
  LoopAttrs attrs;
  /// By stack or sum of the second loop: its place among the stacks or sums of `attrs`.
  std::vector<std::size_t> stack_places, sum_places;
};

/// Merges the equal records of a graph; the first `left` records come from the first loop.
using MergeRecords = std::function<Ref<Graph>(const Graph&, std::size_t left)>;

/// Returns a loop with both bodies over the same inputs, merged by `merge`, and with the stacks and
/// sums of both; equal stacks and sums occur once. Its carries are the first loop's carries.
///
/// Requires loops that read equal operands and were recorded from one body.
UnitedLoops unite_loops(const LoopAttrs& a, const LoopAttrs& b, const MergeRecords& merge);

}  // namespace reel
