// frontend/layers/linear.h — Linear, a matrix product and a bias.
#pragma once

#include <optional>

#include "reel/core/base/visibility.h"
#include "reel/core/types/dim.h"
#include "reel/core/types/dtype.h"
#include "reel/core/types/tensor.h"
#include "reel/frontend/layers/initial_values.h"

REEL_API_BEGIN
namespace reel {

/// Options of Linear::init.
struct LinearOptions {
  bool has_bias = true;       ///< false: without `bias`
  DType dtype = f32;          ///< of the parameters
  InitialValues weight = {};  ///< of the weight; default: glorot_uniform
};

/// y = x·W + b.
struct Linear {
  Tensor weight;               ///< {in, out}; if these are one dim, out is another of its name
  std::optional<Tensor> bias;  ///< {out}
  Dim in = 0, out = 0;         ///< dims of arguments and results; may be the same

  /// Returns a layer with W from options.weight and b = 0. Throws ArgumentError if a dim has no
  /// name or no known size; DTypeError for a dtype that is not floating.
  static Linear init(const Dim& in, const Dim& out, const LinearOptions& options = {});

  /// x: [..., in] -> [..., out].
  Tensor operator()(const Tensor& x) const;
};

}  // namespace reel
REEL_API_END
