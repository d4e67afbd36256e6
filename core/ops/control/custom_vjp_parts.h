// core/ops/control/custom_vjp_parts.h — the parts of a record of with_custom_vjp, for code that
// records it again.
#pragma once

#include <vector>

#include "reel/core/graph/graph.h"

namespace reel {

/// A record of with_custom_vjp in a trace. Its inputs are residuals, captures of the graph,
/// arguments and results. The graph takes residuals, cotangents and captures.
struct CustomVjpParts {
  std::size_t residuals, captures, arguments;
  std::vector<int> given;  ///< by output of the graph: it is the cotangent of this argument
  SubGraph graph;
};
bool is_custom_vjp(const Op& op);
/// Requires attributes of a record of custom_vjp.
CustomVjpParts custom_vjp_parts(const AttrsRef& attrs);

}  // namespace reel
