// trace/passes/forwarded_outputs.h — the pass that finds what a loop gives that is there without
// it.
#pragma once

#include "reel/core/graph.h"

namespace reel {

/// A stack of slices as they came is the tensor that they are slices of; one that is stacked, or
/// added up, twice is there already; and the number of iterations of a loop that runs as often as
/// another one (a gradient does) is that of the other.
///
///   %ys = loop slices (%xs): return %x as a stack          becomes      %ys is %xs
///
/// Slices are not where entries end, or a condition may end the loop: what lies beyond is zeros.
/// Stands before drop_dead, which takes out the stack, and the loop if that was all.
Ref<Graph> forwarded_outputs(const Graph& graph);

}  // namespace reel
