// core/op/check_results.h — check_results, which DetectNan calls for every op.
#pragma once

#include <span>

#include "reel/core/op/op.h"
#include "reel/core/runtime/detect_nan.h"

namespace reel {

/// Throws NumericsError if a result of the op has a NaN, or an infinity that no operand has, as the
/// active DetectNan asks. Requires an active one. Ops that run graphs are not checked themselves.
///
/// inputs: with the values from before the op.
void check_results(const Op& op, std::span<const OpInput> inputs, std::span<const Tensor> outputs);

}  // namespace reel
