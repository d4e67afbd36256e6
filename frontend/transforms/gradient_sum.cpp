#include "reel/frontend/transforms/gradient_sum.h"

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"

namespace reel::detail {

void check_dtype_of_sum(DType sums, const Tensor& total, const Tensor& weight) {
  if (total.dtype() == sums && weight.dtype() == sums) return;
  throw DTypeError(str("GradientSum::add: f returned the total ", total.type(), " and the weight ",
                       weight.type(), ", but the sums are ", sums,
                       "; return both in one dtype, and give the constructor this dtype, as in "
                       "GradientSum<Model>(model, f64)"));
}

}  // namespace reel::detail
