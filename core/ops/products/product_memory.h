// core/ops/products/product_memory.h — which products allocate memory.
#pragma once

#include "reel/core/op/axes.h"
#include "reel/core/ops/products/products.h"

namespace reel {

/// Returns true if the kernel of a product may allocate memory besides its output, for operands of
/// these types. Products of few rows read both operands in place. Requires is_product(call.op), and
/// known sizes.
bool product_takes_memory(const OpCall& call);

/// Implements it for dot_op.
bool dot_takes_memory(const DotAttrs& attrs, const TensorType& a, const TensorType& b);

}  // namespace reel
