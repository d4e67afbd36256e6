// core/ops/elementwise/element_loop.h — element_loop(), finds the loop that an element-wise op
// runs.
#pragma once

#include <optional>
#include <variant>

#include "reel/core/op/op.h"
#include "reel/core/ops/kernels/pointwise_table.h"

namespace reel {

/// where: selects among its operands.
struct WhereLoop {};
/// cast: changes the dtype.
struct CastLoop {};
using ElementLoop = std::variant<Unary, Binary, WhereLoop, CastLoop>;

/// Returns the loop of an op if its kernel runs only that loop, otherwise nullopt.
std::optional<ElementLoop> element_loop(const Op& op);

}  // namespace reel
