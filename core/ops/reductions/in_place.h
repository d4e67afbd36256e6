// core/ops/reductions/in_place.h — ops with a result that may lie where their first operand does.
#pragma once

#include "reel/core/op/op.h"

namespace reel {

/// Returns true if the kernel may write its result over input 0: the op updates it, or reads each
/// element before it writes there. Requires a result of the input's type.
bool works_in_place(const Op& op);

}  // namespace reel
