// trace/executors/plan/gradient_values.h — which values of a graph are there for gradients only.
#pragma once

#include <cstdint>
#include <vector>

#include "reel/core/ops/loop.h"

namespace reel {

/// How often a loop is the gradient of a loop.
int gradient_order(const LoopAttrs& attrs);

/// By value: nothing needs it but gradients of loops, of a higher order than `order`, and what
/// depends on them. wanted: by output of the graph, whether it is for something else.
std::vector<std::uint8_t> for_gradients_only(const Graph& graph, int order,
                                             const std::vector<std::uint8_t>& wanted);

}  // namespace reel
