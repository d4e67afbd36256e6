// trace/passes/hoisting/pack_weights.h — packs matrices that a loop captures, once, before the
// loop.
#pragma once

#include <cstdint>

#include "reel/core/graph/graph.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/core/ops/products/products.h"
#include "reel/core/options/passes.h"

namespace reel {

/// Selects the matrices that pack_weights packs.
enum class Packs : std::uint8_t {
  none,   ///< the pass does not run
  large,  ///< matrices that are faster to read when packed
  all,    ///< for tests: small ones, too
};
Packs packs_of(const Passes& passes);

/// Packs matrices by which a loop multiplies in every iteration: copies each, once and before the
/// loop, into the order in which products read it.
///
///   Before: loop(…, %w): body(%h; captures %w): dot(%h, %w)
///   After:  %p = pack(%w)
///           loop(…, %w, %p): body(%h; captures %w, %p): packed_dot(%h, %p)
///
/// A matrix is packed outside all loops that capture it. Whether it is packed depends on sizes; if
/// a trace does not know them, a run decides (core/ops/products/packed.cpp).
///
/// Preserves: results up to rounding.   Runs: behind the passes that move products.
/// Skips: small matrices; matrices that have the batch rows of the loop's state as columns. A run
/// may take some of these rows at a time, but a packed matrix cannot be cut by rows.
Ref<Graph> pack_weights(const Graph& graph, Packs packs = Packs::large);

/// Returns the order in which iterations add up a product with a loop-invariant matrix once
/// pack_weights has run. For passes that run before it.
SumOrder order_in_steps(const LoopAttrs& attrs, const DotAttrs& dot, const TensorType& a,
                        const TensorType& matrix, Packs packs);

}  // namespace reel
