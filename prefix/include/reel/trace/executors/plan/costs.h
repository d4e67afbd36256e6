// trace/executors/plan/costs.h — what an op is predicted to take.
#pragma once

#include <span>

#include "reel/core/graph.h"
#include "reel/trace/executors/plan/rates.h"

namespace reel {

/// Seconds of one call, on one thread: the longest of its multiplications and additions, its bytes,
/// and the elements that it computes, each at its rate; and what any call costs. Types are known;
/// the op is no loop and no cond.
double predicted_seconds(const Op& op, const Attrs* attrs, std::span<const TensorType> in,
                         std::span<const TensorType> out, const Rates& rates);

}  // namespace reel
