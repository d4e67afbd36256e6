// core/functions/activations.h — activation functions made of other functions: silu, glu and more.
#pragma once

#include <optional>

#include "reel/core/base/visibility.h"
#include "reel/core/dims/axis.h"
#include "reel/core/functions/operands.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// Returns x · sigmoid(x), also called swish. Source: Elfwing, Uchibe & Doya (2017), eq. 3.
Tensor silu(const Arg& x);
/// Returns x if x > 0, otherwise slope · x; the gradient at 0 is `slope`. Source: Maas, Hannun & Ng
/// (2013).
Tensor leaky_relu(const Arg& x, double slope = 0.01);
/// Returns x if x > 0, otherwise alpha · (exp(x) - 1); the gradient at 0 is alpha. Source: Clevert,
/// Unterthiner & Hochreiter (2015), eq. 15.
Tensor elu(const Arg& x, double alpha = 1);
/// Returns log(exp(a) + exp(b)) without overflow, as numpy.logaddexp. Two operands -inf give -inf;
/// equal infinities share the gradient. Throws DTypeError unless the operands are floating.
Tensor log_add_exp(const Arg& a, const Arg& b);
/// Returns a · sigmoid(b), where a and b are the first and the second half along an axis. `half` is
/// the dim of a half; default: a new one. Throws ShapeError if the size is odd. Source: Dauphin et
/// al. (2016), eq. 1.
Tensor glu(const Tensor& x, const Axis& axis, std::optional<Dim> half = {});

}  // namespace reel
REEL_API_END
