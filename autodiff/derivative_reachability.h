// autodiff/derivative_reachability.h — which inputs and outputs of a graph derivatives can reach.
#pragma once

#include <cstdint>
#include <vector>

#include "reel/core/graph/graph.h"

namespace reel {

// Derivatives pass through floating values and ops with a vjp only.

/// Returns, by input, whether a cotangent of a marked output can reach it.
std::vector<std::uint8_t> reachable_inputs(const Graph& graph,
                                           const std::vector<std::uint8_t>& outputs);
/// Returns, by output, whether a tangent of a marked input can reach it.
std::vector<std::uint8_t> reachable_outputs(const Graph& graph,
                                            const std::vector<std::uint8_t>& inputs);

}  // namespace reel
