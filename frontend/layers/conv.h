// frontend/layers/conv.h — Conv and DepthwiseConv, convolutions with a bias.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/dims/axis.h"
#include "reel/core/functions/convolutions.h"
#include "reel/core/types/dim.h"
#include "reel/core/types/dtype.h"
#include "reel/core/types/tensor.h"
#include "reel/frontend/layers/initial_values.h"

REEL_API_BEGIN
namespace reel {

/// Options of Conv::init and DepthwiseConv::init; stride, dilation and padding apply to all axes
/// alike.
struct ConvOptions {
  std::int64_t stride = 1, dilation = 1;         ///< as for conv, of all axes
  std::int64_t groups = 1;                       ///< of channels; not for DepthwiseConv
  WindowPadding padding = WindowPadding::valid;  ///< as for conv
  bool transposed = false;                       ///< as for conv; not for DepthwiseConv
  bool has_bias = true;                          ///< false: without `bias`
  DType dtype = f32;                             ///< of the parameters
  InitialValues filter = {};                     ///< of the filter; default: glorot_uniform
};

/// y = conv(x, filter) + b.
struct Conv {
  Tensor filter;               ///< {taps..., in / groups, out}
  std::optional<Tensor> bias;  ///< {out}
  Dims taps;                   ///< dims of the filter, one for each axis
  Dim in = 0, out = 0;         ///< dims of channels of arguments and results; may be the same
  std::int64_t stride = 1, dilation = 1, groups = 1;  ///< as for conv, of all axes
  WindowPadding padding = WindowPadding::valid;       ///< as for conv
  bool transposed = false;                            ///< as for conv

  /// Returns a layer with a filter from options.filter and b = 0. taps: the number along each of
  /// one to three axes. Throws ArgumentError if a dim has no name or no known size, or if groups do
  /// not divide both; DTypeError for a dtype that is not floating.
  static Conv init(const std::vector<std::int64_t>& taps, const Dim& in, const Dim& out,
                   const ConvOptions& options = {});

  /// x: [..., over, in] -> [..., new dims along over, out]. to: the dims along `over`, as for conv.
  Tensor operator()(const Tensor& x, const Axes& over, const Dims& to = {}) const;
};

/// A convolution of each channel with a filter of its own, and a bias.
struct DepthwiseConv {
  Tensor filter;                                 ///< {taps..., channel}
  std::optional<Tensor> bias;                    ///< {channel}
  Dims taps;                                     ///< dims of the filter, one for each axis
  Dim channel = 0;                               ///< of arguments and results
  std::int64_t stride = 1, dilation = 1;         ///< as for conv, of all axes
  WindowPadding padding = WindowPadding::valid;  ///< as for conv

  /// Returns a layer as Conv::init does.
  static DepthwiseConv init(const std::vector<std::int64_t>& taps, const Dim& channel,
                            const ConvOptions& options = {});

  /// x: [..., over, channel] -> [..., new dims along over, channel].
  Tensor operator()(const Tensor& x, const Axes& over, const Dims& to = {}) const;
};

}  // namespace reel
REEL_API_END
