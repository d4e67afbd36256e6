// core/ops/custom_vjp.h — results whose gradient the user gives.
#pragma once

#include <functional>
#include <vector>

#include "reel/core/tensor.h"

namespace reel {

/// Takes residuals and the cotangents of results to those of arguments; an empty Tensor stands for
/// none.
using CustomBackward = std::function<Tensors(const Tensors& residuals, const Tensors& cotangents)>;

/// The results as values of their own, whose cotangents `backward` takes to the arguments; the way
/// in which they were computed has no part in the gradient.
///
/// In a trace `backward` is recorded at once; eagerly it is called when a gradient is asked for.
Tensors with_custom_vjp(const Tensors& arguments, const Tensors& results, const Tensors& residuals,
                        const CustomBackward& backward);

}  // namespace reel
