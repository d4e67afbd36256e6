// trace/passes/cleanup/share_masked_operands.h — products read an operand in its masked form.
#pragma once

#include "reel/core/graph/graph.h"

namespace reel {

/// Lets a product read the masked form of an operand that exists anyway, if the same mask hides
/// the result of the product.
///
///   Before: s = where(m, dot(k, h), -inf); w = softmax(s); kz = where(m, k, 0); c = dot(w, kz)
///   After:  kz = where(m, k, 0); s = where(m, dot(kz, h), -inf); w = softmax(s); c = dot(w, kz)
///
/// Attention to ragged keys masks the scores, and the keys for the sum that they weight. A loop
/// then captures and keeps in the cache one form of the keys instead of both.
///
/// Preserves: bits.   Runs: before hoist_once.   Skips: operands that other records read without
/// the mask, as both forms would remain; operands that the product sums along a dim of the
/// mask.
Ref<Graph> share_masked_operands(const Graph& graph);

}  // namespace reel
