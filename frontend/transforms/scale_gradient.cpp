#include "reel/frontend/transforms/scale_gradient.h"

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/ops.h"
#include "reel/core/ops/control/custom_vjp.h"

namespace reel {

Tensor scale_gradient(const Tensor& x, const Arg& factor) {
  check_defined("scale_gradient", x);
  if (!is_float(x.dtype()))
    throw DTypeError(str("scale_gradient: x must be f32 or f64, got ", x.type()));
  if (!factor.is_number()) check_defined("scale_gradient", factor.tensor());
  const Tensor value = factor.is_number() ? scalar(factor.number(), x.dtype()) : factor.tensor();
  if (value.dtype() != x.dtype())
    throw DTypeError(str("scale_gradient: the factor must have the dtype of x: x ", x.type(),
                         ", factor ", value.type()));
  for (const Dim& dim : value.dims())
    if (value.type().is_named() && !contains(x.dims(), dim))
      throw ShapeError(str("scale_gradient: the factor ", value.type(), " has the dim ", dim,
                           ", which x lacks: x ", x.type(),
                           "; give a number, or a factor over dims ", "of x"));
  // Expanded here, so that an error about dims comes from the call and not from the gradient.
  const Tensor factors =
      as_function("scale_gradient", [&] { return stop_gradient(expand(value, x.dims())); });
  return with_custom_vjp({x}, {x}, {factors}, [](const Tensors& residuals, const Tensors& g) {
    return Tensors{g[0] * residuals[0]};
  })[0];
}

}  // namespace reel
