// core/ops/cumulative.h — running products, for the gradient of prod.
#pragma once

#include "reel/core/op.h"
#include "reel/core/tensor.h"

namespace reel {

/// Running sums, products and recurrences along an axis.
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
extern const Op cumsum_op, product_before_op, recurrence_op;

/// At each position the product of what comes before it along the axis, from the other end with
/// `reverse`; 1 at the first.
Tensor product_before(const Tensor& x, int axis, bool reverse);

}  // namespace reel
