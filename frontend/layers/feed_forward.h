// frontend/layers/feed_forward.h — FeedForward and GatedFeedForward, the position-wise parts of
// Transformers.
#pragma once

#include "reel/core/base/visibility.h"
#include "reel/core/types/dim.h"
#include "reel/core/types/dtype.h"
#include "reel/core/types/tensor.h"
#include "reel/frontend/layers/dropout.h"
#include "reel/frontend/layers/linear.h"

REEL_API_BEGIN
namespace reel {

/// The function between two linear layers, or on the gate of GatedFeedForward.
enum class ActivationFunction { relu, gelu, silu, sigmoid };

/// Options of FeedForward::init and GatedFeedForward::init.
struct FeedForwardOptions {
  ActivationFunction activation = ActivationFunction::gelu;  ///< of the inner features; of the gate
  double dropout = 0;                                        ///< rate for the inner features
  bool has_bias = true;                                      ///< false: without biases
  DType dtype = f32;                                         ///< of the parameters
};

/// y = f(x·W + b)·V + c, applied to each position alone. Source: Vaswani et al. (2017), eq. 2.
struct FeedForward {
  Linear wide, narrow;                                       ///< model -> inner, inner -> model
  ActivationFunction activation = ActivationFunction::gelu;  ///< f
  Dropout dropout;                                           ///< of the inner features

  /// Returns a layer with parameters of Linear::init, and throws as that does.
  static FeedForward init(const Dim& model, const Dim& inner,
                          const FeedForwardOptions& options = {});
  /// x: [..., model] -> [..., model].
  Tensor operator()(const Tensor& x) const;
};

/// y = (f(x·G) · (x·W))·V: SwiGLU with ActivationFunction::silu, GEGLU with gelu, GLU with sigmoid.
/// Source: Shazeer (2020), eq. 5 and 6.
struct GatedFeedForward {
  Linear gate, wide, narrow;  ///< model -> inner twice, inner -> model
  ActivationFunction activation = ActivationFunction::silu;  ///< f
  Dropout dropout;                                           ///< of the inner features

  /// Returns a layer with parameters of Linear::init, and throws as that does.
  static GatedFeedForward init(const Dim& model, const Dim& inner,
                               const FeedForwardOptions& options = {
                                   .activation = ActivationFunction::silu, .has_bias = false});
  /// x: [..., model] -> [..., model].
  Tensor operator()(const Tensor& x) const;
};

namespace detail {
/// Returns dropout(x); x, without random numbers, if the rate is 0.
Tensor dropped(const Tensor& x, const Dropout& dropout);
}  // namespace detail

}  // namespace reel
REEL_API_END
