#include "reel/frontend/optimisers/clip.h"

#include <limits>

#include "reel/core/ops.h"
#include "reel/core/ops/reductions/norm.h"
#include "reel/frontend/tree/leaves.h"

namespace reel::detail {
Tensor global_norm_of(const TreeLeaves& leaves) {
  DType dtype = f32;
  for (const TreeLeaf& leaf : leaves)
    if (is_floating(leaf) && leaf.tensor.dtype() == f64) dtype = f64;
  Tensors norms;
  for (const TreeLeaf& leaf : leaves)
    if (is_floating(leaf)) norms.push_back(euclidean_norm(leaf.tensor));
  if (norms.empty()) return scalar(0, dtype);
  const Tensor norm = norms.size() == 1 ? norms[0] : euclidean_norm(stack(norms));
  return cast(norm, dtype);
}

Tensor clip_leaves(TreeLeaves& leaves, double max_norm) {
  if (!(max_norm > 0))
    throw ArgumentError(str("clip_by_global_norm: max_norm must be positive, got ", max_norm));
  const Tensor norm = global_norm_of(leaves);
  // A bound beyond the norm's dtype would be infinite there, and the derivatives NaN.
  const double largest =
      norm.dtype() == f64 ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
  if (max_norm > largest) return norm;
  // Exactly 1 within the bound. The divisor is never a norm of zeros or a bound that rounds to
  // zero: the cotangents that `where` discards would be NaN.
  const Tensor is_above = norm > max_norm;
  const Tensor scale = where(is_above, max_norm / where(is_above, norm, 1.), 1.);
  for (TreeLeaf& leaf : leaves)
    if (is_floating(leaf))
      leaf.tensor =
          leaf.tensor *
          (leaf.tensor.dtype() == scale.dtype() ? scale : cast(scale, leaf.tensor.dtype()));
  return norm;
}

void clip_values(TreeLeaves& leaves, double low, double high) {
  if (!(low <= high))
    throw ArgumentError(
        str("clip_by_value: low must not be above high, got [", low, ", ", high, "]"));
  for (TreeLeaf& leaf : leaves)
    if (is_floating(leaf)) leaf.tensor = minimum(maximum(leaf.tensor, low), high);
}

}  // namespace reel::detail
