// trace/passes/cleanup/forward_outputs.h — replaces loop outputs by equal values that exist
// already.
#pragma once

#include "reel/core/graph/graph.h"

namespace reel {

/// Replaces outputs of loops:
/// - A stack of unchanged slices becomes the sliced tensor.
/// - A value that is stacked twice, or added up twice, becomes one output.
/// - The trip count of a loop becomes the trip count of another loop that bounds it, as a loop
///   bounds its gradient loop.
///
///   Before: %ys = loop slices (%xs): return %x as a stack
///   After:  readers of %ys read %xs
///
/// Preserves: bits.   Runs: before drop_dead, which drops the stack, and the loop if no other
/// output is read.
/// Skips: stacks of slices if entries finish one by one or a condition may end the loop, as the
/// stack then ends in zeros.
Ref<Graph> forward_outputs(const Graph& graph);

}  // namespace reel
