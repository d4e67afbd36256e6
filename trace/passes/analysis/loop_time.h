// trace/passes/analysis/loop_time.h — the dim of a loop's time steps.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "reel/core/ops/loop/loop.h"

namespace reel {

/// Returns the dim along which all dense slices and stacks of a loop run. If there is none, returns
/// nothing and sets `why` to the reason, for explain().
std::optional<Dim> loop_time_of(const LoopAttrs& attrs, std::span<const TensorType> inputs,
                                std::string& why);

/// Returns loop_time_of() for a loop that can be divided into several loops along its time steps;
/// otherwise nothing. Requires that the loop has no condition and that dense slices tell its trip
/// count. If its entries finish one by one, their lengths must be known.
std::optional<Dim> divisible_loop_time_of(const LoopAttrs& attrs,
                                          std::span<const TensorType> inputs);

}  // namespace reel
