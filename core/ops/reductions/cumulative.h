// core/ops/reductions/cumulative.h — running sums, products and logsumexp, and the recurrence for
// their gradients.
#pragma once

#include "reel/core/op/op.h"
#include "reel/core/types/tensor.h"

namespace reel {

/// Attributes of running sums, products and recurrences along an axis.
struct CumulativeAttrs {
  int axis = 0;
  bool exclusive = false, reverse = false;
  template <class F>
  static void fields(F&& f) {
    f("axis", &CumulativeAttrs::axis);
    f("exclusive", &CumulativeAttrs::exclusive);
    f("reverse", &CumulativeAttrs::reverse);
  }
};
extern const Op cumsum_op, product_before_op, logcumsumexp_op, recurrence_op;

/// Returns, at each position, the product of all elements before it along the axis, and 1 at the
/// first. reverse: from the other end.
Tensor product_before(const Tensor& x, int axis, bool reverse);

}  // namespace reel
