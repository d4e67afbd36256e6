// frontend/optimisers/clip.h — global_norm, clip_by_global_norm and clip_by_value for gradients.
#pragma once

#include <utility>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/frontend/sparse/embedding_table.h"
#include "reel/frontend/tree/tree.h"

REEL_API_BEGIN
namespace reel {

namespace detail {
Tensor global_norm_of(const TreeRef& tree);
/// Scales floating tensors so that their global norm is at most max_norm. Returns the norm before.
Tensor clip_tensors(const std::vector<Tensor*>& tensors, double max_norm);
/// Clips the floating tensors of a tree. Returns the norm before.
Tensor clip_tree(const TreeSlot& tree, double max_norm);
void clip_values(const TreeSlot& tree, double low, double high);
}  // namespace detail

/// Returns the Euclidean norm of all floating tensors of a tree together, without the padding of
/// ragged dims. Rows of an EmbeddingTable with equal indices are summed first.
///
/// The result is an f32 scalar, or f64 if any of the tensors is f64. Other leaves are ignored;
/// without floating tensors the norm is 0. Throws ArgumentError if a leaf is a TensorArray of
/// floating elements, as the two functions below do.
template <class Tree>
Tensor global_norm(const Tree& tree) {
  const Tree coalesced = detail::with_coalesced_tables(tree);
  return detail::global_norm_of(detail::TreeRef(coalesced));
}

/// Returns {tree scaled so that its global norm is at most max_norm, the norm before}.
///
/// A tree within the bound, or with a norm of NaN, is returned with the same bits. An infinite norm
/// turns finite elements into 0 and infinite ones into NaN. A max_norm above the largest number of
/// the norm's dtype, such as INFINITY, changes no tree. Rows of an EmbeddingTable are returned once
/// per index. Throws ArgumentError unless max_norm is positive. Source: Pascanu, Mikolov & Bengio
/// (2013), algorithm 1.
template <class Tree>
std::pair<Tree, Tensor> clip_by_global_norm(const Tree& tree, double max_norm) {
  Tree clipped = tree;
  Tensor norm = detail::clip_tree(detail::TreeSlot(clipped), max_norm);
  return {std::move(clipped), std::move(norm)};
}

/// Returns the tree with every element of its floating tensors clipped to [low, high]; NaN stays
/// NaN.
///
/// Rows of an EmbeddingTable are returned once per index; if 0 is not in [low, high], as a dense
/// table. Throws ArgumentError if low is above high or either is NaN.
template <class Tree>
Tree clip_by_value(const Tree& tree, double low, double high) {
  Tree clipped = tree;
  detail::clip_values(detail::TreeSlot(clipped), low, high);
  return clipped;
}

}  // namespace reel
REEL_API_END
