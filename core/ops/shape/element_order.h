// core/ops/shape/element_order.h — ops that give the same elements other dims.
#pragma once

#include "reel/core/op/op.h"
#include "reel/core/ops/shape/shape.h"

namespace reel {

/// Returns true if the result has the elements of operand 0 in their order, under other dims: a
/// reshape, a renamed, merged or split dim. Such ops share a kernel.
inline bool keeps_elements(const Op& op) { return op.kernel == same_elements; }

}  // namespace reel
