// frontend/signals/along.h — the product of a signal's axis with a matrix.
#pragma once

#include "reel/core/types/tensor.h"

namespace reel::detail {

/// Returns x with axis `axis` contracted with a matrix [axis, made]: the made axis comes last for
/// named dims, and stays at its place for plain ones.
Tensor product_along(const Tensor& x, int axis, const Tensor& matrix);

}  // namespace reel::detail
