// trace/passes/analysis/carry_layers.h — layers_of_carries, which groups the carries of a loop into
// layers.
#pragma once

#include <vector>

#include "reel/core/ops/loop/loop.h"

namespace reel {

/// Returns the layer of each carry of a loop, counted from 0: stacked recurrent layers, which
/// split_loops() makes loops of their own.
///
/// Carries that depend on each other, over any number of iterations, are one recurrence. If a
/// recurrence has a matrix product, its layer is one above the highest recurrence with a product
/// that it depends on. Without a product, it has the layer of the highest recurrence that it
/// depends on. Takes time linear in the loop's body.
std::vector<int> layers_of_carries(const LoopAttrs& attrs);

}  // namespace reel
