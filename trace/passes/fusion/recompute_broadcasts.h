// trace/passes/fusion/recompute_broadcasts.h — computes large values again instead of keeping them
// in memory, if that is cheap.
#pragma once

#include "reel/core/graph/graph.h"

namespace reel {

/// Copies cheap element-wise ops for readers that cannot be fused with the first ones: a gradient
/// reads exp(x y) of the forward pass. The copy is fused with its readers, which takes less time
/// than the value takes to be written and read. Operands are much smaller than the value, or are
/// kept anyway: then one or two simple ops are copied. Also in bodies and branches.
///
///   Before: %2 = expand(%0); %3 = exp(%2); %4 = f(%3); … %8 = dot(%4, %7); %9 = mul(%8, %3)
///   After:  %2 = expand(%0); %3 = exp(%2); %4 = f(%3); … %8 = dot(%4, %7)
///           %10 = expand(%0); %11 = exp(%10); %9 = mul(%8, %11)
///
/// Requires: nothing.   Preserves: bits.   Runs: before fuse_pointwise().   Skips: values of less
/// than 1 MiB, except repetitions, which cost nothing in a fused op; outputs of graphs.
Ref<Graph> recompute_broadcasts(const Graph& graph);

}  // namespace reel
