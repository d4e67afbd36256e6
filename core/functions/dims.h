// core/functions/dims.h — masks of the padding of ragged dims.
#pragma once

#include "reel/core/base/visibility.h"
#include "reel/core/functions/dim_arithmetic.h"
#include "reel/core/functions/operands.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// Returns position < length as booleans: true for valid positions, false for padding. The result
/// has the dims of the lengths, then `dim`. For a dim with one size it is [dim], all true. Throws
/// ArgumentError for an undefined dim.
Tensor mask(const Dim& dim);
/// Returns x with 0 (or `value`) in its padding; x itself if it has none. Dims and dtype stay.
Tensor mask_padding(const Tensor& x, const NestedList& value = 0.);

}  // namespace reel
REEL_API_END
