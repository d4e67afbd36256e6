// core/functions/dims.h — what tensors know about the lengths of their dims.
#pragma once

#include "reel/core/dim_arithmetic.h"
#include "reel/core/functions/operands.h"
#include "reel/core/tensor.h"

namespace reel {

/// position < length: boolean over the dims of the lengths, and the dim.
Tensor mask(const Dim& dim);
/// x with zeros (or `value`) in its padding.
Tensor mask_padding(const Tensor& x, const NestedList& value = 0.);

}  // namespace reel
