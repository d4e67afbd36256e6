#include "reel/frontend/transforms/gradient_sum.h"

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/ops/list/list.h"
#include "reel/frontend/tree/refuse_arrays.h"

namespace reel::detail {

void check_dtype_of_sum(DType sums, const Tensor& total, const Tensor& weight) {
  if (total.dtype() == sums && weight.dtype() == sums) return;
  throw DTypeError(str("GradientSum::add: f returned the total ", total.type(), " and the weight ",
                       weight.type(), ", but the sums are ", sums,
                       "; return both in one dtype, and give the constructor this dtype, as in "
                       "GradientSum<Model>(model, f64)"));
}

TreeLeaves zero_sums(const TreeRef& parameters) {
  TreeLeaves leaves = flatten_tree(parameters);
  refuse_arrays("GradientSum", leaves, paths_fn(parameters));
  for (TreeLeaf& leaf : leaves) {
    if (leaf.kind != TreeLeaf::Kind::tensor) continue;
    const bool is_array = leaf.tensor.is_defined() && leaf.tensor.type().is_list();
    leaf.tensor = is_array ? list_zeros_like(leaf.tensor) : zeros_like(leaf.tensor);
  }
  return leaves;
}

}  // namespace reel::detail
