// core/ops/element_loop.h — ElementLoop, which of the processor's loops an element-wise op runs.
#pragma once

#include <optional>
#include <variant>

#include "reel/core/op.h"
#include "reel/core/ops/pointwise_table.h"

namespace reel {

/// Chooses among its operands, as where does.
struct WhereLoop {};
/// Changes the dtype.
struct CastLoop {};
using ElementLoop = std::variant<Unary, Binary, WhereLoop, CastLoop>;

/// The loop that is all that an op's kernel runs; none if the kernel does anything else.
std::optional<ElementLoop> element_loop(const Op& op);

}  // namespace reel
