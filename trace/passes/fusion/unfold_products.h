// trace/passes/fusion/unfold_products.h — makes products of few terms element-wise work.
#pragma once

#include "reel/core/graph/graph.h"

namespace reel {

/// Replaces large products without a sum, and sums of few terms of a large operand, by products of
/// elements, so that fuse_pointwise() fuses them with the ops that read or make the large value.
/// These products take as long as reading and writing their memory. Also in bodies and branches.
///
///   Before: %2 = dot(%0, %1) {a_contract=[]}     After: %3 = expand(%0); %4 = expand(%1)
///                                                       %2 = mul(%3, %4)
///   Before: %1 = tanh(%0); %3 = dot(%1, %2)      After: %1 = tanh(%0); %4 = expand(%2)
///                                                       %5 = mul(%1, %4); %3 = sum(%5)
///
/// Requires: nothing.   Preserves: results up to rounding of sums.   Runs: before fuse_pointwise().
/// Skips: products if no element-wise op makes or reads the large value; axes that would move;
/// sums over padding; sizes that only a run tells.
Ref<Graph> unfold_products(const Graph& graph);

}  // namespace reel
