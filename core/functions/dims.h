// core/functions/dims.h — masks of the padding of ragged dims.
#pragma once

#include "reel/core/functions/dim_arithmetic.h"
#include "reel/core/functions/operands.h"
#include "reel/core/types/tensor.h"

namespace reel {

/// Returns position < length: booleans over the dims of the lengths, and the dim.
Tensor mask(const Dim& dim);
/// Returns x with 0 (or `value`) in its padding.
Tensor mask_padding(const Tensor& x, const NestedList& value = 0.);

}  // namespace reel
