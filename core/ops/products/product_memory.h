// core/ops/products/product_memory.h — which products allocate memory.
#pragma once

#include "reel/core/op/axes.h"
#include "reel/core/ops/products/products.h"

namespace reel {

/// Returns true unless the call is a product with a kernel that allocates only its output,
/// for operands of these types. Products of few rows read both operands in place. Requires known
/// sizes of products.
bool product_takes_memory(const OpCall& call);

/// Implements it for dot_op.
bool dot_takes_memory(const DotAttrs& attrs, const TensorType& a, const TensorType& b);

}  // namespace reel
