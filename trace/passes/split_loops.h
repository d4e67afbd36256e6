// trace/passes/split_loops.h — the pass that takes layers apart which one loop runs together.
#pragma once

#include "reel/core/graph.h"

namespace reel {

/// A loop over several recurrences, of which one does not wait for another, as layers of cells do
/// that are stacked in one step, becomes a loop for each, the later ones over what the earlier ones
/// stack:
///
///   loop over x: a' = f(a, x); b' = g(b, a')          becomes          loop over x: a' = f(a, x);
///   stack a'; loop over a: b' = g(b, a)
///
/// so that what the second computes from the first alone is done for many steps at once
/// (batch_over_time), and both run beside each other (adjoin_loops). A recurrence is one that a
/// product takes part in; what else a step hands on stays with those it depends on. Between two
/// layers as little is handed on as a product allows: h forwards, backwards the gradient of h and
/// not that of the gates. Only loops whose length is that of a known dim, without effects, and
/// whose entries all run to the end.
///
/// A loop under a policy, and one that recalls, stays one: its checkpoints are of all layers. It is
/// its chunks that are taken apart, when the pass runs once more, behind chunk_loops, in chunks as
/// long as those of the layers of such a loop without a policy: the bits are the same.
Ref<Graph> split_loops(const Graph& graph);

}  // namespace reel
