// frontend/layers/rms_norm.h — RmsNorm, which scales features to a root mean square of 1.
#pragma once

#include "reel/core/base/visibility.h"
#include "reel/core/types/dim.h"
#include "reel/core/types/dtype.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// Options of RmsNorm::init.
struct RmsNormOptions {
  double epsilon = 1e-6;  ///< added to the mean square
  DType dtype = f32;      ///< of the parameters
};

/// y = x / √(mean(x²) + ε) · scale, with the mean over `feature`.
/// Source: Zhang & Sennrich (2019), eq. 4.
struct RmsNorm {
  Tensor scale;           ///< {feature}
  Dim feature = 0;        ///< the normalised dim
  double epsilon = 1e-6;  ///< added to the mean square

  /// Returns a layer with scale 1. Throws ArgumentError if the dim has no name or no known size, or
  /// if epsilon is negative; DTypeError for a dtype that is not floating.
  static RmsNorm init(const Dim& feature, const RmsNormOptions& options = {});

  /// Normalises each vector along `feature`. x: [..., feature] -> the same dims.
  Tensor operator()(const Tensor& x) const;
};

}  // namespace reel
REEL_API_END
