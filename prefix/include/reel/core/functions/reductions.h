// core/functions/reductions.h — sums, products, means, extremes and softmax over axes; running
// sums.
#pragma once

#include "reel/core/axis.h"
#include "reel/core/tensor.h"

namespace reel {

/// Whether reduced axes stay, with size 1, so that the result broadcasts against x: NumPy's
/// keepdims. For plain dims; named ones broadcast without, and keeping one is an ArgumentError.
enum class Keep { no, yes };

// Over the given axes, or over all; an empty list reduces nothing. Padding of ragged dims never
// counts, neither along the dim itself nor along a dim that its lengths run over. Over nothing: sum
// 0, prod 1, mean and variance 0, max and logsumexp -inf, min inf (integers: the smallest, the
// largest), any false, all true, argmax and argmin 0; with zero gradient. NaN wins in max and min.
//
// Throws IndexError or ShapeError for an axis that is not there, ArgumentError for one named twice,
// DTypeError for a dtype that makes no sense.

Tensor sum(const Tensor& x, const Axes& axes, Keep keep = Keep::no);
Tensor sum(const Tensor& x);
/// The gradient is right where elements are 0, too. Cost of it: two running products.
Tensor prod(const Tensor& x, const Axes& axes, Keep keep = Keep::no);
Tensor prod(const Tensor& x);
Tensor mean(const Tensor& x, const Axes& axes, Keep keep = Keep::no);
Tensor mean(const Tensor& x);
/// The mean of (x - mean(x))², of the population as numpy.var: not divided by the count less one.
Tensor variance(const Tensor& x, const Axes& axes, Keep keep = Keep::no);
Tensor variance(const Tensor& x);
/// The largest, or smallest, element; its gradient is shared equally among ties.
Tensor max(const Tensor& x, const Axes& axes, Keep keep = Keep::no);
Tensor max(const Tensor& x);
Tensor min(const Tensor& x, const Axes& axes, Keep keep = Keep::no);
Tensor min(const Tensor& x);
Tensor any(const Tensor& x, const Axes& axes, Keep keep = Keep::no);
Tensor any(const Tensor& x);
Tensor all(const Tensor& x, const Axes& axes, Keep keep = Keep::no);
Tensor all(const Tensor& x);
/// The position (i32) of the largest, or smallest, element: the first of equal ones, and of NaN.
Tensor argmax(const Tensor& x, const Axis& axis, Keep keep = Keep::no);
Tensor argmin(const Tensor& x, const Axis& axis, Keep keep = Keep::no);
/// Of the whole tensor, in row-major order of its dims: as an index into reshape(x, {-1}), where
/// padding has positions too.
Tensor argmax(const Tensor& x);
Tensor argmin(const Tensor& x);
/// log Σ exp(x), without overflow.
Tensor logsumexp(const Tensor& x, const Axes& axes, Keep keep = Keep::no);
Tensor logsumexp(const Tensor& x);
/// Along the axes; padding gets 0, and so does a row without any valid entry.
Tensor softmax(const Tensor& x, const Axes& axes);
/// Padding gets 0 here too, so that products with it are harmless.
Tensor log_softmax(const Tensor& x, const Axes& axes);

/// How cumsum and cumprod go along their axis.
struct Cumulative {
  bool exclusive = false;  ///< position k gets what comes before it, without its own element
  bool reverse = false;    ///< from the end to the beginning
};
/// Running sums and products along an axis, dims and dtype of x; integers wrap around.
///
/// Along a ragged dim each entry within its own length; what is padding of x is 0 in the result, if
/// the axis is ragged or lengths of a ragged dim run over it. cumsum(x, axis, {.exclusive = true}).
/// The gradient of cumprod is right where elements are 0, too. Throws DTypeError for booleans,
/// IndexError for a scalar, which has no axis.
Tensor cumsum(const Tensor& x, const Axis& axis, Cumulative how = {});
Tensor cumprod(const Tensor& x, const Axis& axis, Cumulative how = {});

}  // namespace reel
