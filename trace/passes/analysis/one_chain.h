// trace/passes/analysis/one_chain.h — is_one_chain: whether the body of a loop runs as one chain of
// element-wise ops.
#pragma once

#include "reel/core/ops/loop/loop.h"

namespace reel {

/// Returns true if the body has only element-wise ops that may be one PointwiseCode, on values of
/// the carries' type, and all entries run in all iterations. A plan then runs many iterations in
/// one call (IterationSeries), with intermediate values in registers. An op outside of the loop
/// would write its results to memory, and read them again.
bool is_one_chain(const LoopAttrs& attrs);

}  // namespace reel
