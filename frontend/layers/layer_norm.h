// frontend/layers/layer_norm.h — LayerNorm, which normalises features to mean 0 and variance 1.
#pragma once

#include "reel/core/base/visibility.h"
#include "reel/core/types/dim.h"
#include "reel/core/types/dtype.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// Options of LayerNorm::init.
struct LayerNormOptions {
  double epsilon = 1e-5;  ///< added to the variance
  DType dtype = f32;      ///< of the parameters
};

/// y = (x - mean) / √(variance + ε) · scale + bias, with mean and (biased) variance over `feature`.
/// Source: Ba, Kiros & Hinton (2016), eq. 3 and 4.
struct LayerNorm {
  Tensor scale, bias;     ///< {feature} each
  Dim feature = 0;        ///< the normalised dim
  double epsilon = 1e-5;  ///< added to the variance

  /// Returns a layer with scale 1 and bias 0. Throws ArgumentError if the dim has no name or no
  /// known size, or if epsilon is negative; DTypeError for a dtype that is not floating.
  static LayerNorm init(const Dim& feature, const LayerNormOptions& options = {});

  /// Normalises each vector along `feature`. x: [..., feature] -> the same dims.
  Tensor operator()(const Tensor& x) const;
};

}  // namespace reel
REEL_API_END
