// core/ops/cumulative.h — running products, for the gradient of prod.
#pragma once

#include "reel/core/tensor.h"

namespace reel {

/// At each position the product of what comes before it along the axis, from the other end with
/// `reverse`; 1 at the first.
Tensor product_before(const Tensor& x, int axis, bool reverse);

}  // namespace reel
