#include "reel/frontend/clip.h"

#include "reel/core/ops.h"

namespace reel::detail {
namespace {

bool has_norm(const TreeLeaf& leaf) {
  return leaf.kind == TreeLeaf::Kind::tensor && leaf.tensor.is_defined() &&
         !leaf.tensor.type().is_list() && is_float(leaf.tensor.dtype());
}

}  // namespace

Tensor global_norm_of(const TreeLeaves& leaves) {
  DType dtype = f32;
  for (const TreeLeaf& leaf : leaves)
    if (has_norm(leaf) && leaf.tensor.dtype() == f64) dtype = f64;
  Tensor squares;
  for (const TreeLeaf& leaf : leaves) {
    if (!has_norm(leaf)) continue;
    Tensor of_leaf = sum(square(leaf.tensor));
    if (of_leaf.dtype() != dtype) of_leaf = cast(of_leaf, dtype);
    squares = squares.is_defined() ? squares + of_leaf : of_leaf;
  }
  return squares.is_defined() ? sqrt(squares) : scalar(0, dtype);
}

Tensor clip_leaves(TreeLeaves& leaves, double max_norm) {
  if (!(max_norm > 0))
    throw ArgumentError(str("clip_by_global_norm: max_norm must be positive, got ", max_norm));
  const Tensor norm = global_norm_of(leaves);
  const Tensor scale = where(norm > max_norm, max_norm / norm, 1);
  for (TreeLeaf& leaf : leaves)
    if (has_norm(leaf))
      leaf.tensor =
          leaf.tensor *
          (leaf.tensor.dtype() == scale.dtype() ? scale : cast(scale, leaf.tensor.dtype()));
  return norm;
}

}  // namespace reel::detail
