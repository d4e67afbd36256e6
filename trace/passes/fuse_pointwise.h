// trace/passes/fuse_pointwise.h — fuse_pointwise, element-wise ops that read each other become one.
#pragma once

#include "reel/core/graph.h"

namespace reel {

/// Puts element-wise ops on tensors of one size that read each other's results, or the same
/// elements, into one op `fused`, which a plan does tile by tile; splits into parts of that size,
/// concats of such, and repetitions that they read (spread) go with them. So do sums over rows of
/// some 2,000 elements at most, and what is computed of those: layer normalisation is one op. The
/// same bits.
///
///   %4 = add(%0, %1)                 %6 = fused(%0, %1, %2)
///   %5 = sigmoid(%4)          →        body: %3 = add(%0, %1); %4 = sigmoid(%3);
///   %6 = mul(%5, %2)                         %5 = mul(%4, %2); return %5
///
/// Loops and branches inside are done too. Goes last: other passes know nothing of `fused`.
Ref<Graph> fuse_pointwise(const Graph& graph);

}  // namespace reel
