// frontend/tree/state_select.h — where, gather, pack and unpack on whole states, including their
// Dims.
#pragma once

#include <optional>
#include <utility>

#include "reel/core/base/visibility.h"
#include "reel/frontend/tree/leaves.h"
#include "reel/frontend/tree/tree.h"

REEL_API_BEGIN
namespace reel {

// Dims among the leaves: a Dim with lengths over the selected or moved entries is replaced by a new
// one, with the lengths of the entries that were moved there. Tensors of the tree with that Dim, or
// one computed from it, get the new Dim, and each entry keeps its own elements. Other leaves
// without the dims in question stay unchanged. Arrays have no entries: only a mask without dims
// selects them.

namespace detail {
/// Makes an EmbeddingTable dense in both trees if it is rows in one tree and dense in the other.
/// Defined with EmbeddingTable.
void make_tables_alike(const TreeSlot& a, const TreeSlot& b);
/// Returns the leaves that are values and indices of IndexedSlices or SparseTensors.
std::vector<std::size_t> sparse_leaves(const TreeRef& tree);
TreeLeaves where_leaves(const Tensor& mask, TreeLeaves a, TreeLeaves b,
                        const std::vector<std::size_t>& sparse, const PathsFn& paths);
TreeLeaves gather_leaves(TreeLeaves tree, const Tensor& indices, const Dim& dim,
                         const PathsFn& paths);
TreeLeaves pack_leaves(TreeLeaves tree, const Tensor& mask, const Dim& packed,
                       const PathsFn& paths);
/// Undoes pack_leaves. backup: values of entries that the mask does not select; empty for zeros.
TreeLeaves unpack_leaves(TreeLeaves tree, const Dim& packed, const Tensor& mask,
                         const TreeLeaves& backup, const PathsFn& paths);
Dim packed_dim(const Tensor& mask);
}  // namespace detail

/// Returns a if the mask holds, otherwise b: an `if` on states, or for each of their entries, as in
/// decoders.
///
/// mask: boolean. Without dims it selects all leaves together: tensors with named dims and plain
/// sizes, scalars, arrays, and rows of a table, which may differ in number. The other side may be
/// NaN, and gradients do not depend on it:
///
///   return where_nested(isfinite(global_norm(g)), std::pair{model, optimiser}, before);
///
/// A mask over named dims selects by entries. A tensor that lacks some of these dims is taken from
/// a if the mask holds for any entry along them. A tensor that lacks all of them, or has plain
/// sizes, is taken from a, and so are arrays. A mask of plain sizes selects along the leading axes
/// of plain tensors.
///
/// A Dim that differs in a and b becomes a new one, of the selected size or lengths; with a mask
/// over entries it has lengths over the dims of the mask. Throws StructureError, ShapeError or
/// DTypeError if a and b differ in another part; StructureError if a mask with dims meets rows of a
/// table or a SparseTensor; DTypeError if the mask is not boolean. Source: RETURNN's where_nested,
/// mask_nested.
template <class T>
T where_nested(const Tensor& mask, const T& a, const T& b) {
  T x = a, y = b;
  detail::make_tables_alike(detail::TreeSlot(x), detail::TreeSlot(y));
  return unflatten(x, detail::where_leaves(mask, flatten(x), flatten(y),
                                           detail::sparse_leaves(detail::TreeRef(x)),
                                           [&] { return leaf_paths(x, "state"); }));
}

/// Returns gather(x, indices, dim) for every tensor that has the dim, for example the states that
/// the hypotheses of a beam continue.
///
/// A leaf that is the dim itself becomes the dim of the indices that replaces it. Throws ShapeError
/// if the indices have several such dims. Source: RETURNN's gather_nested.
template <class T>
T gather_nested(const T& tree, const Tensor& indices, const Dim& dim) {
  return unflatten(tree, detail::gather_leaves(flatten(tree), indices, dim,
                                               [&] { return leaf_paths(tree, "state"); }));
}

/// Returns {tree of pack(x, mask), dim of the selected entries}; packs every tensor that has dims
/// of the mask. A tensor that has only some of them is expanded along the others first.
///
/// Throws DTypeError if the mask is not boolean, ShapeError if it has plain sizes or none. Errors
/// name the leaf. Source: RETURNN's masked_select_nested.
template <class T>
std::pair<T, Dim> pack_nested(const T& tree, const Tensor& mask) {
  const Dim packed = detail::packed_dim(mask);
  return {unflatten(tree, detail::pack_leaves(flatten(tree), mask, packed,
                                              [&] { return leaf_paths(tree, "state"); })),
          packed};
}

/// Inverts pack_nested: moves tensors with the packed dim back to the entries where the mask holds.
/// Their results have all dims of the mask. The other entries come from `backup`; without it they
/// are zeros, and empty along ragged dims.
///
/// backup: a tree of the same structure; its tensors may lack dims of the mask. A Dim that
/// pack_nested made of the backup's Dim becomes that Dim again. Any other Dim that differs from the
/// backup's becomes a new one, with lengths over the dims of the mask. Throws StructureError,
/// ShapeError or DTypeError if tree and backup do not fit. Errors name the leaf. Source: RETURNN's
/// masked_scatter_nested.
template <class T>
T unpack_nested(const T& tree, const Dim& packed, const Tensor& mask, const T& backup) {
  return unflatten(tree, detail::unpack_leaves(flatten(tree), packed, mask, flatten(backup),
                                               [&] { return leaf_paths(tree, "state"); }));
}
template <class T>
T unpack_nested(const T& tree, const Dim& packed, const Tensor& mask) {
  return unflatten(tree, detail::unpack_leaves(flatten(tree), packed, mask, {},
                                               [&] { return leaf_paths(tree, "state"); }));
}

}  // namespace reel
REEL_API_END
