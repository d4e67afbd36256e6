// trace/passes/cleanup/drop_masks.h — drops masks of values that are masked already.
#pragma once

#include "reel/core/graph/graph.h"

namespace reel {

/// Drops where(mask, x, number) if x has that number wherever the mask is false: 0, or -inf. The
/// kernel of an element-wise op tells the number that it makes of others.
///
///   Before: a = where(m, x, 0); b = where(m, y, 0); c = where(m, mul(a, b), 0)
///   After:  a = where(m, x, 0); b = where(m, y, 0); c = mul(a, b)
///
/// Gradients of ragged values mask each cotangent, and softmax both its operand and its result.
///
/// Preserves: bits, except in rows of softmax that have a NaN or +inf: their padding is NaN instead
/// of 0.   Runs: before fuse_pointwise. Not on graphs that are differentiated: the gradient of a
/// mask masks the cotangent.
/// Skips: numbers that are 0 only if others are finite, as a product with one masked factor; zeros
/// that may be negative.
Ref<Graph> drop_masks(const Graph& graph);

}  // namespace reel
