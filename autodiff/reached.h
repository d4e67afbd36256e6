// autodiff/reached.h — how far derivatives can come in a graph.
#pragma once

#include <cstdint>
#include <vector>

#include "reel/core/graph.h"

namespace reel {

/// Which inputs a cotangent of the marked outputs can reach, and which outputs a tangent of the
/// marked inputs.
std::vector<std::uint8_t> reached_inputs(const Graph& graph,
                                         const std::vector<std::uint8_t>& outputs);
std::vector<std::uint8_t> reached_outputs(const Graph& graph,
                                          const std::vector<std::uint8_t>& inputs);

}  // namespace reel
