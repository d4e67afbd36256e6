// onnx/ops/rows.h — sequences of different lengths in plain tensors.
#pragma once

#include "reel/core/types/tensor.h"

namespace reel::imported {

/// Returns x with its first two axes exchanged.
Tensor transpose_first_two(const Tensor& x);
/// Returns for each entry the positions 0, 1, ... of an axis, the first `lengths` of them reversed.
/// lengths: i64[batch] -> i64[batch, time].
Tensor reversed_positions(const Dim& time, const Tensor& lengths);

}  // namespace reel::imported
