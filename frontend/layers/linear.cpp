#include "reel/frontend/layers/linear.h"

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/ops.h"
#include "reel/frontend/layers/initial_values.h"

namespace reel {

Linear Linear::init(const Dim& in, const Dim& out, const LinearOptions& options) {
  detail::check_parameter_dim("Linear", "in", in);
  detail::check_parameter_dim("Linear", "out", out);
  if (in == out)
    throw ArgumentError(str("Linear: in and out are the same dim, ", in,
                            "; make another Dim for out, and rename the result"));
  detail::check_parameter_dtype("Linear", options.dtype);
  std::optional<Tensor> bias;
  if (options.has_bias) bias = zeros({out}, options.dtype);
  return {glorot_uniform({in, out}, in.size(), out.size(), options.dtype), bias, in, out};
}

Tensor Linear::operator()(const Tensor& x) const {
  detail::check_input("Linear", "x", x, in, weight.dtype());
  const Tensor y = matmul(x, weight, in);
  return bias ? y + *bias : y;
}

}  // namespace reel
