// onnx/ops/reshape.h — the rule of Reshape.
#pragma once

#include "reel/onnx/call.h"

namespace reel::imported {

/// Returns the elements of the first input in the given shape. A 0 in the shape stands for the size
/// of the same axis of the input unless allowzero is set; one -1 stands for the size that follows
/// from the others. One size that only a run knows may follow from the others too.
Values run_reshape(const Call& call);

}  // namespace reel::imported
