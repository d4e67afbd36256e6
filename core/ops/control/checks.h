// core/ops/control/checks.h — which ops only check values.
#pragma once

#include "reel/core/op/op.h"

namespace reel {

/// True if the op throws for wrong values and has no other effect: it may run again after an error,
/// and every executor runs it, even if its result is not read.
bool is_check(const Op& op);

}  // namespace reel
