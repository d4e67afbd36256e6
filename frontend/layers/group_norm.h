// frontend/layers/group_norm.h — GroupNorm, which normalises groups of channels.
#pragma once

#include <cstdint>

#include "reel/core/base/visibility.h"
#include "reel/core/types/dim.h"
#include "reel/core/types/dtype.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// Options of GroupNorm::init.
struct GroupNormOptions {
  double epsilon = 1e-5;  ///< added to the variance
  DType dtype = f32;      ///< of the parameters
};

/// y = (x - mean) / √(variance + ε) · scale + bias, with mean and (biased) variance over the
/// channels of a group and over given dims, such as time. Channels 0 ... channel / groups - 1 are
/// the first group. Source: Wu & He (2018), eq. 1 to 7.
struct GroupNorm {
  Tensor scale, bias;            ///< {channel} each
  Dim channel = 0;               ///< the dim that is cut into groups
  Dim group = 0, per_group = 0;  ///< the groups, and the channels of one
  double epsilon = 1e-5;         ///< added to the variance

  /// Returns a layer with scale 1 and bias 0. Throws ArgumentError if the dim has no name or no
  /// known size, if `groups` does not divide it, or if epsilon is negative; DTypeError for a dtype
  /// that is not floating.
  static GroupNorm init(std::int64_t groups, const Dim& channel,
                        const GroupNormOptions& options = {});

  /// Normalises each group of channels over these and over the dims `over`, which are named dims of
  /// x besides channel; padding does not count. PyTorch's nn.GroupNorm is over all dims but the
  /// batch. x: [..., channel] -> the same dims.
  Tensor operator()(const Tensor& x, const Dims& over = {}) const;
};

}  // namespace reel
REEL_API_END
