// frontend/loops/backtrack.h — backtrack: reads the sequences of a search's final hypotheses.
#pragma once

#include <optional>

#include "reel/core/base/visibility.h"
#include "reel/frontend/tree/leaves.h"
#include "reel/frontend/tree/tree.h"

REEL_API_BEGIN
namespace reel {

namespace detail {
TreeLeaves backtrack_leaves(TreeLeaves ys, const Tensor& backrefs, const Dim& steps,
                            const Dim& beam, const std::optional<Tensor>& hypotheses,
                            const PathsFn& paths);
TreeLeaves backtrack_arrays(TreeLeaves ys, const TensorArray& backrefs, const Dim& beam,
                            const std::optional<Tensor>& hypotheses, const PathsFn& paths);
}  // namespace detail

/// Returns the sequences of a beam search's hypotheses, by following the back references from the
/// last step to the first.
///
/// ys: a tree of tensors with `steps`, the values kept in each step, for instance labels.
///
/// backrefs: integers [steps, ..., beam], the place of each hypothesis's predecessor in the beam of
/// the previous step. The first step's are not read.
///
/// hypotheses: integers, places in the beam of the last step: [..., best] for several, [...] for
/// one. Default: all of them, in order.
///
/// Returns ys with `steps` in front and the dims of `hypotheses` instead of beam: element t of a
/// hypothesis comes from its ancestor in step t. A tensor without beam is the same for all
/// hypotheses. Along ragged `steps`, as scan with `cond_dims` returns them, each entry starts from
/// its own last step; exact zeros beyond. Gradients flow to the elements that were read.
///
/// Throws ShapeError if ys or backrefs lack a dim, or if `steps` has lengths over beam, because the
/// hypotheses of one entry are searched together. Throws IndexError for a place outside the beam;
/// beyond an entry's own end of a ragged beam the message names index 2147483647. Throws DTypeError
/// for places that are no integers; StructureError for an array in ys. Source: the searches in
/// RETURNN's user code, which runs such loops back by hand.
template <class T>
T backtrack(const T& ys, const Tensor& backrefs, const Dim& steps, const Dim& beam,
            const std::optional<Tensor>& hypotheses = {}) {
  return unflatten(ys, detail::backtrack_leaves(flatten(ys), backrefs, steps, beam, hypotheses,
                                                [&] { return leaf_paths(ys, "ys"); }));
}

/// Backtracks arrays with one element per step, as a while_loop pushes them. Tensors of the tree
/// stay unchanged. Also throws ShapeError if an array has another number of elements than backrefs.
/// Otherwise as the overload for tensors.
template <class T>
T backtrack(const T& ys, const TensorArray& backrefs, const Dim& beam,
            const std::optional<Tensor>& hypotheses = {}) {
  return unflatten(ys, detail::backtrack_arrays(flatten(ys), backrefs, beam, hypotheses,
                                                [&] { return leaf_paths(ys, "ys"); }));
}

}  // namespace reel
REEL_API_END
