// core/ops/control/custom_vjp.h — results with a gradient that the user supplies.
#pragma once

#include <functional>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// Maps residuals and the cotangents of the results to the cotangents of the arguments. An empty
/// Tensor stands for a cotangent that is absent.
using CustomBackward = std::function<Tensors(const Tensors& residuals, const Tensors& cotangents)>;

/// Returns the results as new values. `backward` maps their cotangents to the arguments; the ops
/// that computed the results take no part in the gradient.
///
/// In a trace `backward` is recorded at once; in eager mode it is called when a gradient is
/// computed. It has a random stream of its own, for which the call takes one number: its draws are
/// the same in each mode, and for each gradient.
Tensors with_custom_vjp(const Tensors& arguments, const Tensors& results, const Tensors& residuals,
                        const CustomBackward& backward);

}  // namespace reel
REEL_API_END
