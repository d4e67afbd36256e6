// trace/passes/loop_structure/join_loops.h — merges a loop into the loop that it repeats.
#pragma once

#include "reel/core/graph/graph.h"

namespace reel {

/// Merges two loops if the second runs over the iterations of the first, in the same direction, and
/// reads its stacks as slices. The stacked values are then read in the same iteration and need not
/// be saved.
///
///   Before: %y, %saved, %n = loop (%x); %t = loop bound %n slices (%saved) (%v)
///   After:  %y, %t = loop (%x, %v)
///
/// A jvp has this form: the tangent, reversed twice, runs forwards beside the value.
///
/// Preserves: bits.   Runs: behind forward_outputs, which shows that trip counts are equal.
/// Skips: loops that a user wrote one behind the other, loops with entries that finish one by one,
/// and loops under a memory policy.
/// Merges at most one pair of loops per graph and call; optimise() repeats the pass until nothing
/// changes.
Ref<Graph> join_loops(const Graph& graph);

}  // namespace reel
