// frontend/layers/rotate.h — rotations of pairs of features by given angles.
#pragma once

#include "reel/core/base/visibility.h"
#include "reel/core/types/tensor.h"

namespace reel::detail {

/// Returns x with feature i and feature i + n/2 rotated by the angle i, as `rotary` does.
/// x: [..., feature]. cosines, sines: [..., half], over some dims of x, with half of n features.
REEL_API Tensor rotated(const Tensor& x, const Dim& feature, const Dim& half, const Tensor& cosines,
                        const Tensor& sines);

}  // namespace reel::detail
