// core/functions/reductions.h — reductions over axes, softmax, and running sums and products.
#pragma once

#include "reel/core/base/visibility.h"
#include "reel/core/dims/axis.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// Whether reduced axes stay with size 1, so that the result broadcasts against x: NumPy's
/// keepdims. For plain dims only; named dims broadcast without it, and Keep::yes throws
/// ArgumentError for them.
enum class Keep { no, yes };

// Reductions are over the given axes, or over all; an empty list reduces nothing. Padding of ragged
// dims is ignored, along the dim itself and along the dims of its lengths. NaN wins in max and min.
// Results over no elements, all with zero gradient:
//
//   sum, mean, variance   0       max, logsumexp   -inf (max of integers: the smallest)
//   prod                  1       min              inf (integers: the largest)
//   any                   false   argmax, argmin   0
//   all                   true
//
// All throw IndexError or ShapeError for an axis that x does not have, and ArgumentError for an
// axis listed twice. They throw DTypeError for other dtypes than these: any and all take booleans;
// sum, prod, max, min, argmax and argmin integers and floats; the others floats.

/// Returns the sum of the elements.
Tensor sum(const Tensor& x, const Axes& axes, Keep keep = Keep::no);
Tensor sum(const Tensor& x);
/// Returns the product of the elements. The gradient is correct also where elements are 0. It costs
/// two running products.
Tensor prod(const Tensor& x, const Axes& axes, Keep keep = Keep::no);
Tensor prod(const Tensor& x);
/// Returns the mean of the elements.
Tensor mean(const Tensor& x, const Axes& axes, Keep keep = Keep::no);
Tensor mean(const Tensor& x);
/// Returns the mean of (x - mean(x))²: the population variance, as numpy.var, without Bessel's
/// correction.
Tensor variance(const Tensor& x, const Axes& axes, Keep keep = Keep::no);
Tensor variance(const Tensor& x);
/// Return the largest or smallest element. Ties share the gradient equally.
Tensor max(const Tensor& x, const Axes& axes, Keep keep = Keep::no);
Tensor max(const Tensor& x);
Tensor min(const Tensor& x, const Axes& axes, Keep keep = Keep::no);
Tensor min(const Tensor& x);
/// Return true if any element is true, or if all are.
Tensor any(const Tensor& x, const Axes& axes, Keep keep = Keep::no);
Tensor any(const Tensor& x);
Tensor all(const Tensor& x, const Axes& axes, Keep keep = Keep::no);
Tensor all(const Tensor& x);
/// Return the position (i32) of the largest or smallest element: the first of equal ones, and the
/// first NaN.
Tensor argmax(const Tensor& x, const Axis& axis, Keep keep = Keep::no);
Tensor argmin(const Tensor& x, const Axis& axis, Keep keep = Keep::no);
/// Return the position in the whole tensor, in row-major order of its dims: an index into
/// reshape(x, {-1}). Padding has positions too, as in reshape(x, {-1}).
Tensor argmax(const Tensor& x);
Tensor argmin(const Tensor& x);
/// Returns log Σ exp(x), without overflow.
Tensor logsumexp(const Tensor& x, const Axes& axes, Keep keep = Keep::no);
Tensor logsumexp(const Tensor& x);
/// Returns softmax along the axes. Padding gives 0, and so does a row without valid elements.
Tensor softmax(const Tensor& x, const Axes& axes);
/// Returns the logarithm of softmax along the axes. Padding gives 0, so that products with it are
/// harmless.
Tensor log_softmax(const Tensor& x, const Axes& axes);

/// Options of cumsum, cumprod and logcumsumexp.
struct Cumulative {
  bool exclusive = false;  ///< position k gets the elements before it, without its own
  bool reverse = false;    ///< from the end to the beginning
};
/// Return running sums and products along an axis, with the dims and dtype of x; integers wrap
/// around: cumsum(x, axis, {.exclusive = true}).
///
/// Along a ragged dim, each entry runs within its own length. If the axis is ragged, or lengths of
/// a ragged dim run over it, padding of x gives 0. The gradient of cumprod is correct also where
/// elements are 0. Throws DTypeError for booleans, IndexError for a scalar, which has no axis.
Tensor cumsum(const Tensor& x, const Axis& axis, Cumulative how = {});
Tensor cumprod(const Tensor& x, const Axis& axis, Cumulative how = {});
/// Returns running logsumexp along an axis, log Σ exp(x), without overflow; of no elements, -inf.
/// Otherwise as cumsum, for floats; padding gives 0. Where the result is -inf, it has no gradient.
Tensor logcumsumexp(const Tensor& x, const Axis& axis, Cumulative how = {});

}  // namespace reel
REEL_API_END
