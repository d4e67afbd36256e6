// onnx/plain_dims.h — inputs with named dims, as ONNX's ops see them.
#pragma once

#include "reel/core/types/tensor.h"

namespace reel::imported {

/// Returns x with a plain size for each named dim. A size that a trace does not know becomes an
/// axis of unknown size, so that one trace serves any size. Requires: no dim is ragged.
Tensor with_plain_dims(const Tensor& x);

}  // namespace reel::imported
