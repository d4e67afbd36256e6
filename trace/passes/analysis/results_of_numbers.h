// trace/passes/analysis/results_of_numbers.h — the numbers that ops make of some numbers.
#pragma once

#include <optional>
#include <span>

#include "reel/core/graph/graph.h"

namespace reel {

/// Returns the number that an element-wise op makes of these numbers, one for each operand, by its
/// kernel. Returns nothing if the op has effects or refuses scalars.
///
/// in: the types of the operands.
std::optional<double> result_of_numbers(const OpRecord& record, std::span<const TensorType> in,
                                        std::span<const double> numbers);

/// Returns true if a result of the operand's type is +0 at each element where the operand is -inf,
/// also in rows of -inf alone: softmax, not log_softmax. The answer comes from the kernel, for rows
/// without NaN and +inf.
bool drops_minus_infinity(const OpRecord& record, const TensorType& operand);

}  // namespace reel
