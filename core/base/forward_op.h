// core/base/forward_op.h — marks the places of ops that a gradient applies.
#pragma once

#include <string_view>
#include <vector>

#include "reel/core/base/source.h"

namespace reel {

/// Returns the place `source`, marked as part of a gradient of the op `name`. The lines are the
/// same. Returns kNoSource unchanged. name: must live as long as the process.
SourceId in_gradient_of(SourceId source, std::string_view name);
/// Returns the names of these marks, the innermost first: for the gradient of tanh's gradient,
/// tanh_grad and tanh. Empty for an op of the program itself.
std::vector<std::string_view> forward_ops_of(SourceId source);

}  // namespace reel
