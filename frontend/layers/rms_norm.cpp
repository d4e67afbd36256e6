#include "reel/frontend/layers/rms_norm.h"

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/ops.h"
#include "reel/core/types/mode.h"
#include "reel/frontend/layers/initial_values.h"
#include "reel/frontend/layers/made_parameter.h"
#include "reel/frontend/loops/whole_function.h"

namespace reel {

RmsNorm RmsNorm::init(const Dim& feature, const RmsNormOptions& options) {
  detail::check_parameter_dim("RmsNorm", "feature", feature);
  detail::check_parameter_dtype("RmsNorm", options.dtype);
  if (!(options.epsilon >= 0))
    throw ArgumentError(str("RmsNorm: epsilon must not be negative, got ", options.epsilon));
  return {ones({feature}, options.dtype), feature, options.epsilon};
}

Tensor RmsNorm::operator()(const Tensor& x) const {
  detail::check_input("RmsNorm", "x", x, feature, detail::made_dtype("RmsNorm", "scale", scale));
  const auto run = [&] {
    // One quotient per row, as in LayerNorm.
    const Tensor normaliser = 1.0 / sqrt(mean(square(x), feature) + epsilon);
    return x * normaliser * scale;
  };
  if (!WholeFunctions::are_recorded()) return run();
  return whole_function({"rms_norm", {x, scale}, {canonical(feature)}, {epsilon}},
                        [&] { return Tensors{run()}; })[0];
}

}  // namespace reel
