#include "reel/frontend/layers/linear.h"

#include "reel/core/ops.h"
#include "reel/frontend/layers/initial_values.h"
#include "reel/frontend/layers/made_parameter.h"

namespace reel {

Linear Linear::init(const Dim& in, const Dim& out, const LinearOptions& options) {
  detail::check_parameter_dim("Linear", "in", in);
  detail::check_parameter_dim("Linear", "out", out);
  detail::check_parameter_dtype("Linear", options.dtype);
  std::optional<Tensor> bias;
  if (options.has_bias) bias = zeros({out}, options.dtype);
  // The weight cannot have one dim twice.
  const Dim made = in == out ? Dim(out.name(), out.size()) : out;
  return {detail::initial_weight("Linear", options.weight, {in, made}, in.size(), out.size(),
                                 options.dtype),
          bias, in, out};
}

Tensor Linear::operator()(const Tensor& x) const {
  detail::check_input("Linear", "x", x, in, detail::made_dtype("Linear", "weight", weight));
  Tensor y = matmul(x, weight, in);
  if (in == out) y = rename(y, weight.dims().back(), out);
  return bias ? y + *bias : y;
}

}  // namespace reel
