// trace/passes/fusion/scatter_last.h — scatters into a difference instead of into zeros.
#pragma once

#include "reel/core/graph/graph.h"

namespace reel {

/// Adds scattered numbers to a difference, if they are its first operand and are zeros elsewhere.
///
///   Before: u = scatter_add(zeros, at, g); s = sum(u); e = mul(p, s); d = sub(u, e)
///   After:  s = add(g, 0); e = mul(p, s); b = sub(0, e); d = scatter_add(b, at, g)
///
/// The gradient of cross entropy by class indices has one number per row, and zeros for all other
/// classes. Zeros, their copy, and the sum each cost as much as a pass over the logits. A plan
/// makes the last scatter_add in place.
///
/// Requires: nothing.   Preserves: bits.   Runs: before fuse_pointwise().   Skips: indices with
/// axes that the tensor lacks, since several numbers may meet at one element; indices that may mean
/// no element; ragged indexed axes; scattered tensors with other readers; differences behind
/// effects, or behind ops that fail for values.
Ref<Graph> scatter_last(const Graph& graph);

}  // namespace reel
