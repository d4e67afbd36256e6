// trace/passes/pack_weights.h — pack_weights, matrices that a loop captures are packed before it.
#pragma once

#include "reel/core/graph.h"

namespace reel {

/// A matrix from outside of a loop by which something is multiplied in every iteration is put, once
/// and before the loop, into the order in which products read it.
///
///   loop(…, %w)                              %p = pack(%w)
///     body(%h; captures %w)                  loop(…, %w, %p)
///       dot(%h, %w)                   →        body(%h; captures %w, %p)
///                                                packed_dot(%h, %p)
///
/// Out of all loops that it is outside of. The same results up to rounding. Sizes decide, those
/// that a trace does not know when it runs: small ones stay as they are (core/ops/packed.cpp),
/// unless `small`. After the passes that know `dot`.
Ref<Graph> pack_weights(const Graph& graph, bool small = false);

}  // namespace reel
