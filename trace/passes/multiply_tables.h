// trace/passes/multiply_tables.h — the pass that multiplies a table once, instead of the rows that
// a loop's steps take from it.
#pragma once

#include "reel/core/graph.h"
#include "reel/trace/passes/pack_weights.h"

namespace reel {

/// How tables are multiplied.
struct MultiplyTables {
  Packs packs = Packs::large;  ///< what pack_weights does afterwards
  bool any = false;            ///< for tests, whatever the sizes
};

/// A table of few rows, such as an embedding of characters, is gathered from by many indices, and a
/// loop multiplies in each step what they gave by a matrix. Rows of the product are the same for
/// the same index, so that the table is multiplied, and they are gathered:
///
///   x = gather(t, i); loop over x: x·w        becomes      p = t·w; loop over i: gather(p, i)
///
/// Its gradient multiplies by what came back of each step, g. That is added up by index instead:
///
///   loop over x, g: sum xᵀ·g; stack g·wᵀ   becomes   loop over i, g: sum s of scatter_add(i, g)
///   scatter_add(i, the stack)                        tᵀ·s; s·wᵀ
///
/// What is gathered has the bits that it had, but for matrices that pack_weights does not pack in
/// loops that run in blocks of rows; sums are taken in another order. Only where rows of
/// 16 columns and more are taken twice and more on the average, and steps take many, since the sum
/// has all of them; of products with more than one column. Loops stay as they are whose entries end
/// one by one, that have a condition or run in chunks, and those that print, or where something is
/// printed between the loop and what gathers or adds up by index. Before the passes that take loops
/// apart.
Ref<Graph> multiply_tables(const Graph& graph, const MultiplyTables& how = {});

}  // namespace reel
