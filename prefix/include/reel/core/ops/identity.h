// core/ops/identity.h — identity_op, for code that writes records itself.
#pragma once

#include "reel/core/op.h"

namespace reel {

/// Gives its input as another value: contributions to its cotangent are added up on their own.
extern const Op identity_op;

}  // namespace reel
