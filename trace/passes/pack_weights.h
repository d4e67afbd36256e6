// trace/passes/pack_weights.h — pack_weights, matrices that a loop captures are packed before it.
#pragma once

#include <cstdint>

#include "reel/core/graph.h"
#include "reel/core/ops/loop.h"
#include "reel/core/ops/products.h"
#include "reel/core/passes.h"

namespace reel {

/// What pack_weights packs.
enum class Packs : std::uint8_t {
  none,   ///< the pass is left out
  large,  ///< those that are read faster then
  all,    ///< for tests, however small
};
Packs packs_of(const Passes& passes);

/// A matrix from outside of a loop by which something is multiplied in every iteration is put, once
/// and before the loop, into the order in which products read it.
///
///   loop(…, %w)                              %p = pack(%w)
///     body(%h; captures %w)                  loop(…, %w, %p)
///       dot(%h, %w)                   →        body(%h; captures %w, %p)
///                                                packed_dot(%h, %p)
///
/// Out of all loops that it is outside of. Not a matrix whose columns are the rows of the loop's
/// state, of which a run may take some at a time: what is packed keeps its type, but has no rows.
/// The same results up to rounding. Sizes decide, those that a trace does not know when it runs:
/// small ones stay as they are (core/ops/packed.cpp). After the passes that know `dot`.
Ref<Graph> pack_weights(const Graph& graph, Packs packs = Packs::large);

/// The order in which steps of a loop add up a product with a matrix that none of them changes,
/// when the pass has seen it. For passes before it.
SumOrder order_in_steps(const LoopAttrs& attrs, const DotAttrs& dot, const TensorType& a,
                        const TensorType& matrix, Packs packs);

}  // namespace reel
