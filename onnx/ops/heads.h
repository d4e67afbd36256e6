// onnx/ops/heads.h — tensors with several heads along the last axis.
#pragma once

#include "reel/onnx/call.h"

namespace reel::imported {

/// [N, L, heads D] -> [N, heads, L, D]. Leaves a tensor of four axes unchanged.
Tensor heads_apart(const Call& call, const Tensor& x, std::int64_t heads);
/// [N, heads, L, D] -> [N, L, heads D]
Tensor heads_together(const Tensor& x);
/// Returns a named dim of an axis's size, which only a run may know.
Dim named_like(const char* name, const Dim& axis);

}  // namespace reel::imported
