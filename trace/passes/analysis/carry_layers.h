// trace/passes/analysis/carry_layers.h — layers_of_carries, which recurrences of a loop wait for
// others.
#pragma once

#include <vector>

#include "reel/core/ops/control/loop.h"

namespace reel {

/// Returns the layer of each carry of a loop. Carries that wait for each other, over any number of
/// iterations, are one recurrence; a layer is how many recurrences with products one with a product
/// waits for, counted along the longest way. Takes time linear in the loop's body.
std::vector<int> layers_of_carries(const LoopAttrs& attrs);

}  // namespace reel
