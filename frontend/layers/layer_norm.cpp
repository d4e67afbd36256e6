#include "reel/frontend/layers/layer_norm.h"

#include <utility>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/ops.h"
#include "reel/frontend/layers/initial_values.h"
#include "reel/frontend/layers/made_parameter.h"

namespace reel {

LayerNorm LayerNorm::init(const Dim& feature, const LayerNormOptions& options) {
  detail::check_parameter_dim("LayerNorm", "feature", feature);
  detail::check_parameter_dtype("LayerNorm", options.dtype);
  if (!(options.epsilon >= 0))
    throw ArgumentError(str("LayerNorm: epsilon must not be negative, got ", options.epsilon));
  return {ones({feature}, options.dtype), zeros({feature}, options.dtype), feature,
          options.epsilon};
}

Tensor LayerNorm::operator()(const Tensor& x) const {
  detail::check_input("LayerNorm", "x", x, feature,
                      detail::made_dtype("LayerNorm", "scale", scale));
  Tensor centred = x - mean(x, feature);
  // One quotient per row: a quotient per element, again in the gradient, would take most of the
  // time.
  const Tensor normaliser = 1.0 / sqrt(mean(square(centred), feature) + epsilon);
  return std::move(centred) * normaliser * scale + bias;  // eagerly in the memory of `centred`
}

}  // namespace reel
