// core/ops/draw_checks.h — an op that refuses logits that no draw can be made from.
#pragma once

#include "reel/core/op.h"

namespace reel {

extern const Op checked_logits_op;

/// Returns the logits as they are. Throws ArgumentError when the op runs if one of them is NaN, or
/// all along the axis are -inf: the message names the entry. Padding does not count.
Tensor checked_logits(const Tensor& logits, int axis);

}  // namespace reel
