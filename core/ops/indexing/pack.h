// core/ops/indexing/pack.h — the key of Dims that pack makes, for packing of whole states.
#pragma once

#include "reel/core/dims/slice_key.h"
#include "reel/core/types/dim.h"
#include "reel/core/types/tensor.h"

namespace reel {

/// Returns the key of the ragged Dims that pack(x, mask, all axes, to) makes of x's Dims
/// (slice_of_dim). unpack with the same mask finds the Dims of x by it (whole_of_known).
SliceKey key_of_packing(const Tensor& mask, const Dim& to);

}  // namespace reel
