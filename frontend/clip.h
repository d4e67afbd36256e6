// frontend/clip.h — global_norm, clip_by_global_norm and clip_by_value: how large a gradient is,
// and making it smaller.
#pragma once

#include <utility>

#include "reel/frontend/embedding_table.h"
#include "reel/frontend/tree.h"

namespace reel {

namespace detail {
Tensor global_norm_of(const TreeLeaves& leaves);
Tensor clip_leaves(TreeLeaves& leaves, double max_norm);
void clip_values(TreeLeaves& leaves, double low, double high);
}  // namespace detail

/// The Euclidean norm of all floating tensors of a tree taken together, without the padding of
/// ragged dims. Rows of an EmbeddingTable that have one index count as their sum.
///
/// -> f32 scalar, f64 if any of them is f64. Other leaves do not count; of none at all the norm is
/// 0.
template <class Tree>
Tensor global_norm(const Tree& tree) {
  return detail::global_norm_of(flatten(detail::with_coalesced_tables(tree)));
}

/// The tree scaled down as a whole, so that its global norm is at most max_norm, and the norm that
/// it had.
///
/// A tree within the bound comes back as it was, to the bit, and so does one whose norm is NaN. An
/// infinite norm makes finite elements 0 and infinite ones NaN. A max_norm above the largest number
/// of the norm's dtype, such as INFINITY, changes no tree. Rows of an EmbeddingTable come back once
/// each. Throws ArgumentError unless max_norm is positive. Source: Pascanu, Mikolov & Bengio
/// (2013), algorithm 1.
template <class Tree>
std::pair<Tree, Tensor> clip_by_global_norm(const Tree& tree, double max_norm) {
  const Tree once = detail::with_coalesced_tables(tree);
  TreeLeaves leaves = flatten(once);
  Tensor norm = detail::clip_leaves(leaves, max_norm);
  return {unflatten(once, leaves), std::move(norm)};
}

/// The tree with every element of its floating tensors brought into [low, high]; NaN stays NaN.
///
/// Rows of an EmbeddingTable come back once each; as a whole table where 0 is not in [low, high].
/// Throws ArgumentError when low is above high, or either is NaN.
template <class Tree>
Tree clip_by_value(const Tree& tree, double low, double high) {
  const bool keeps_zeros = low <= 0 && 0 <= high;
  const Tree whole = keeps_zeros ? detail::with_coalesced_tables(tree) : with_dense_tables(tree);
  TreeLeaves leaves = flatten(whole);
  detail::clip_values(leaves, low, high);
  return unflatten(whole, leaves);
}

}  // namespace reel
