// core/ops/creation.h — ops that make tensors of one number, for passes that ask.
#pragma once

#include "reel/core/op.h"

namespace reel {

extern const Op full_op;       ///< of a given type
extern const Op full_like_op;  ///< with the dims and dtype of an input

/// Whether an op of these gives nothing but zeros.
bool makes_zeros(const Op& op, const Attrs* attrs);

}  // namespace reel
