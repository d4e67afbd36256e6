// bench/models/convolution.h — a convolution over time, with the gradients of x and the filter.
#pragma once

#include "model.h"

namespace reel::bench {

struct ConvolutionSizes {
  int in = 256, out = 256, taps = 5, stride = 1;
  double least = 1;           ///< the shortest of the lengths, as a share of the steps
  bool is_depthwise = false;  ///< a filter for each of `in` channels; `out` is unused
  int batch = 16, steps = 400;
};

/// y = conv(x, filter) with padding `same` or, depthwise, causal; the loss is Σ c·y with a fixed c.
/// Depthwise, the other form copies as many bytes as a step has to read and write.
Model convolution(const ConvolutionSizes& sizes);

}  // namespace reel::bench
