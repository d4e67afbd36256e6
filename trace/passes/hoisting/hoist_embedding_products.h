// trace/passes/hoisting/hoist_embedding_products.h — hoists products of gathered table rows, as
// embeddings need them.
#pragma once

#include "reel/core/graph/graph.h"
#include "reel/trace/passes/hoisting/pack_weights.h"

namespace reel {

/// Options of hoist_embedding_products.
struct MultiplyTables {
  Packs packs = Packs::large;  ///< the matrices that pack_weights will pack later in the pipeline
  bool any = false;            ///< for tests: ignores the limits on sizes
};

/// Multiplies a whole table once instead of the table rows that a loop gathers in each iteration. A
/// table of few rows, such as an embedding of characters, is gathered from by many indices. Equal
/// indices give equal rows of the product:
///
///   Before: x = gather(t, i); loop over x: x·w
///   After:  p = t·w; loop over i: gather(p, i)
///
/// The gradient loop multiplies by the cotangent g of each time step. g is added up by index
/// instead:
///
///   Before: loop over x, g: sum xᵀ·g; stack g·wᵀ
///           scatter_add(i, the stack)
///   After:  loop over i, g: sum s of scatter_add(i, g)
///           tᵀ·s; s·wᵀ
///
/// Preserves: bits of gathered rows, except for matrices that pack_weights does not pack in loops
/// that run in row blocks; sums up to rounding.
/// Runs: before the passes that split or chunk loops.
/// Skips tables of fewer than 16 columns, or gathered from less than twice per table row on
/// average. Skips tables with more than 16 rows per index of an iteration, since the sum has all
/// table rows. Skips products with one column.
/// Skips loops with entries that finish one by one, with a condition, with prints, or chunked.
/// Skips loops if something is printed between the loop and the gather or scatter_add.
Ref<Graph> hoist_embedding_products(const Graph& graph, const MultiplyTables& how = {});

}  // namespace reel
