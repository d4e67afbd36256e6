// onnx/ops/sampling.h — reads images at places between their elements.
#pragma once

#include "reel/onnx/call.h"

namespace reel::imported {

/// How places outside of an image are read.
enum class OutsidePolicy { zeros, border, reflection };

/// How images are read between their elements.
struct SampleOptions {
  enum class Kind { nearest, linear, cubic };
  Kind kind = Kind::linear;
  OutsidePolicy outside = OutsidePolicy::zeros;
  bool align_corners = true;  ///< reflects at the outermost elements; otherwise half behind them
};

/// Returns elements at places. x: [N, C, d1, ..., dk]; places: k tensors [N, P], in elements of
/// each axis from 0 on. Returns [N, C, P].
Tensor sampled(const Tensor& x, const Tensors& places, const SampleOptions& options);

/// Returns the terms of these sums: an element times its weight, for each element that is read.
Tensors sampled_terms(const Tensor& x, const Tensors& places, const SampleOptions& options);

}  // namespace reel::imported
