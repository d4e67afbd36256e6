// core/ops/products/small_dot.h — small products with a loop that a plan chooses in advance.
#pragma once

#include <optional>

#include "reel/core/op/axes.h"
#include "reel/core/ops/products/gemm.h"

namespace reel {

/// Returns the loop of a dot or packed_dot of small matrices without padding, which reads both
/// operands in place and has the bits of the op's kernel. Returns nothing for other calls.
std::optional<SmallProduct> small_dot(const OpCall& call);

}  // namespace reel
