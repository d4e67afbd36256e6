// core/functions/unranked.h — values of a trace whose rank is known only during a run.
#pragma once

#include "reel/core/types/partial_shape.h"
#include "reel/core/types/tensor.h"

namespace reel {

/// Returns x as a value of unknown rank; x itself if it is one.
Tensor as_unranked(const Tensor& x);
/// Returns a value of unknown rank as a tensor of this shape, which each run checks. Requires a
/// known rank in a trace. Throws ShapeError if the value has another shape.
Tensor as_ranked(const Tensor& x, const PartialShape& shape);
/// Return the values stacked along a new axis or dim, as a value of unknown rank. Some of the
/// values may have a known rank. Throw as stack does, during a run.
Tensor stack_unranked(const Tensors& values, int axis);
Tensor stack_unranked(const Tensors& values, const Dim& dim);

/// Returns the tensor that a value of unknown rank is during a run. Empty for a cotangent of zeros.
const Tensor& ranked_value(const Tensor& unranked);

}  // namespace reel
