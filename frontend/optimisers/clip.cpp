#include "reel/frontend/optimisers/clip.h"

#include <limits>

#include "reel/core/ops.h"
#include "reel/core/ops/reductions/norm.h"
#include "reel/frontend/tree/leaves.h"
#include "reel/frontend/tree/refuse_arrays.h"

namespace reel::detail {
namespace {

Tensor norm_of_tensors(const std::vector<const Tensor*>& tensors) {
  DType dtype = f32;
  for (const Tensor* x : tensors)
    if (x->dtype() == f64) dtype = f64;
  Tensors norms;
  for (const Tensor* x : tensors) norms.push_back(euclidean_norm(*x));
  if (norms.empty()) return scalar(0, dtype);
  const Tensor norm = norms.size() == 1 ? norms[0] : euclidean_norm(stack(norms));
  return cast(norm, dtype);
}

/// Returns the leaves of a tree without arrays.
TreeLeaves leaves_without_arrays(const char* function, const TreeRef& tree) {
  TreeLeaves leaves = flatten_tree(tree);
  refuse_arrays(function, leaves, paths_fn(tree));
  return leaves;
}

}  // namespace

Tensor global_norm_of(const TreeRef& tree) {
  const TreeLeaves leaves = leaves_without_arrays("global_norm", tree);
  std::vector<const Tensor*> tensors;
  for (const TreeLeaf& leaf : leaves)
    if (is_floating(leaf)) tensors.push_back(&leaf.tensor);
  return norm_of_tensors(tensors);
}

Tensor clip_tensors(const std::vector<Tensor*>& tensors, double max_norm) {
  const Tensor norm = norm_of_tensors({tensors.begin(), tensors.end()});
  // A bound beyond the norm's dtype would be infinite there, and the derivatives NaN.
  const double largest =
      norm.dtype() == f64 ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
  if (max_norm > largest) return norm;
  // Exactly 1 within the bound. The divisor is never a norm of zeros or a bound that rounds to
  // zero: the cotangents that `where` discards would be NaN.
  const Tensor is_above = norm > max_norm;
  const Tensor scale = where(is_above, max_norm / where(is_above, norm, 1.), 1.);
  for (Tensor* x : tensors)
    *x = *x * (x->dtype() == scale.dtype() ? scale : cast(scale, x->dtype()));
  return norm;
}

Tensor clip_tree(const TreeSlot& tree, double max_norm) {
  coalesce_tables(tree);
  TreeLeaves leaves = leaves_without_arrays("clip_by_global_norm", tree);
  if (!(max_norm > 0))
    throw ArgumentError(str("clip_by_global_norm: max_norm must be positive, got ", max_norm));
  std::vector<Tensor*> tensors;
  for (TreeLeaf& leaf : leaves)
    if (is_floating(leaf)) tensors.push_back(&leaf.tensor);
  Tensor norm = clip_tensors(tensors, max_norm);
  fill_tree(tree, std::move(leaves));
  return norm;
}

void clip_values(const TreeSlot& tree, double low, double high) {
  if (!(low <= high))
    throw ArgumentError(
        str("clip_by_value: low must not be above high, got [", low, ", ", high, "]"));
  const bool keeps_zeros = low <= 0 && 0 <= high;
  if (keeps_zeros)
    coalesce_tables(tree);
  else
    make_tables_dense(tree);
  TreeLeaves leaves = leaves_without_arrays("clip_by_value", tree);
  for (TreeLeaf& leaf : leaves)
    if (is_floating(leaf)) leaf.tensor = minimum(maximum(leaf.tensor, low), high);
  fill_tree(tree, std::move(leaves));
}

}  // namespace reel::detail
