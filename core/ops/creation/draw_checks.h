// core/ops/creation/draw_checks.h — refuses logits from which no draw is possible.
#pragma once

#include "reel/core/op/op.h"

namespace reel {

extern const Op checked_logits_op;

/// Returns the logits unchanged. When the op runs, throws ArgumentError if a logit is NaN or all
/// logits along the axis are -inf; the message names the entry. Padding does not count.
Tensor checked_logits(const Tensor& logits, int axis);

}  // namespace reel
