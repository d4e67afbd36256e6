// frontend/nested.h — where, gather, pack and unpack on whole states, with Dims among their leaves.
#pragma once

#include <optional>
#include <utility>

#include "reel/frontend/leaves.h"
#include "reel/frontend/tree.h"

namespace reel {

// A Dim that is a leaf and has lengths for the entries that are chosen or moved is another one
// afterwards, with the lengths of where an entry came from; tensors of the tree that have the Dim
// (or one computed from it) have the new one then, and each entry its own elements. Other leaves
// that do not have the dims in question stay as they are. Arrays are never chosen or moved.

namespace detail {
TreeLeaves where_leaves(const Tensor& mask, TreeLeaves a, const TreeLeaves& b,
                        const PathsFn& paths);
TreeLeaves gather_leaves(TreeLeaves tree, const Tensor& indices, const Dim& dim,
                         const PathsFn& paths);
TreeLeaves pack_leaves(TreeLeaves tree, const Tensor& mask, const Dim& packed);
/// backup: empty for zeros.
TreeLeaves unpack_leaves(TreeLeaves tree, const Dim& packed, const Tensor& mask, TreeLeaves backup);
Dim packed_dim(const Tensor& mask);
}  // namespace detail

/// Entries of a where the mask holds, and of b elsewhere: the `if` of a decoder whose entries
/// differ.
///
/// mask: boolean over named dims; a tensor that lacks some of them takes a if it holds for any
/// entry there, and one that has none is that of a. Plain tensors: over their leading axes. A Dim
/// with one size that differs in a and b gets lengths over the dims of the mask. Throws
/// StructureError or ShapeError where a and b differ in what the mask does not choose. Source:
/// RETURNN's where_nested, mask_nested.
template <class T>
T where_nested(const Tensor& mask, const T& a, const T& b) {
  return unflatten(a, detail::where_leaves(mask, flatten(a), flatten(b),
                                           [&] { return leaf_paths(a, "state"); }));
}

/// gather(x, indices, dim) of every tensor that has the dim: the states that hypotheses go on from.
///
/// A leaf that is the dim itself becomes the dim of the indices that takes its place. Source:
/// RETURNN's gather_nested.
template <class T>
T gather_nested(const T& tree, const Tensor& indices, const Dim& dim) {
  return unflatten(tree, detail::gather_leaves(flatten(tree), indices, dim,
                                               [&] { return leaf_paths(tree, "state"); }));
}

/// pack(x, mask) of every tensor that has dims of the mask -> {tree, the dim that the selected
/// entries have}. Source: RETURNN's masked_select_nested.
template <class T>
std::pair<T, Dim> pack_nested(const T& tree, const Tensor& mask) {
  const Dim packed = detail::packed_dim(mask);
  return {unflatten(tree, detail::pack_leaves(flatten(tree), mask, packed)), packed};
}

/// The inverse: what has the packed dim goes back to where the mask holds, what lies elsewhere
/// comes from `backup` (zeros and empty histories without one). Source: RETURNN's
/// masked_scatter_nested.
template <class T>
T unpack_nested(const T& tree, const Dim& packed, const Tensor& mask, const T& backup) {
  return unflatten(tree, detail::unpack_leaves(flatten(tree), packed, mask, flatten(backup)));
}
template <class T>
T unpack_nested(const T& tree, const Dim& packed, const Tensor& mask) {
  return unflatten(tree, detail::unpack_leaves(flatten(tree), packed, mask, {}));
}

}  // namespace reel
