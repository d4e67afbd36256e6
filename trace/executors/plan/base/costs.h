// trace/executors/plan/base/costs.h — predicts the time of an op.
#pragma once

#include <span>

#include "reel/core/graph/graph.h"
#include "reel/trace/executors/plan/base/rates.h"

namespace reel {

/// Returns the predicted seconds of one call on one thread: the largest of the times for
/// arithmetic, bytes and computed elements, each at its rate, plus the cost of a call.
///
/// Requires known types; the op is neither a loop nor a cond.
double predicted_seconds(const Op& op, const Attrs* attrs, std::span<const TensorType> in,
                         std::span<const TensorType> out, const Rates& rates);

/// Returns true for ops that combine elements of an operand, as sums and extremes do: their time
/// grows with the operand's elements. Also true for products with sums and for softmax, which take
/// longer per element.
bool combines_elements(const Op& op);

}  // namespace reel
