// frontend/backtrack.h — backtrack: the sequences behind the hypotheses that a search ended with.
#pragma once

#include <optional>

#include "reel/frontend/leaves.h"
#include "reel/frontend/tree.h"

namespace reel {

namespace detail {
TreeLeaves backtrack_leaves(TreeLeaves ys, const Tensor& backrefs, const Dim& steps,
                            const Dim& beam, const std::optional<Tensor>& hypotheses,
                            const PathsFn& paths);
TreeLeaves backtrack_arrays(TreeLeaves ys, const TensorArray& backrefs, const Dim& beam,
                            const std::optional<Tensor>& hypotheses, const PathsFn& paths);
}  // namespace detail

/// What hypotheses of a search are made of, step by step: in each step a search keeps some along
/// `beam`, and of each the place, in the beam of the step before, of the one that it goes on from.
///
/// ys: a tree of tensors with `steps`: what was kept of each step, labels for instance; backrefs:
/// integers [steps, ..., beam]: those places, of which the first step's are not read; hypotheses:
/// integers, which of the last step's: [..., best] for some, [...] for one, by default all of them,
/// in order -> ys, `steps` in front, where element t of a hypothesis is that of its ancestor at
/// step t: dims of `hypotheses` instead of beam. A tensor without beam is the same for all. Along
/// ragged `steps`, as scan with `cond_dims` gives them, each entry's hypotheses are those of its
/// own last step; exact zeros beyond. Gradients go to the elements that were taken.
///
/// Throws ShapeError where ys or backrefs lack a dim, or where steps have lengths over beam:
/// hypotheses of one entry are searched together; IndexError for a place that is not in the beam
/// (behind an entry's own end along a ragged beam: for index 2147483647);
/// DTypeError for places that are no integers; StructureError for an array in ys. Source: the
/// searches of RETURNN's users, whose loops run back by hand.
template <class T>
T backtrack(const T& ys, const Tensor& backrefs, const Dim& steps, const Dim& beam,
            const std::optional<Tensor>& hypotheses = {}) {
  return unflatten(ys, detail::backtrack_leaves(flatten(ys), backrefs, steps, beam, hypotheses,
                                                [&] { return leaf_paths(ys, "ys"); }));
}

/// The same of arrays with one element per step, as a while_loop pushes them; tensors of the tree
/// stay as they are. Throws ShapeError also where an array has another number of elements than
/// backrefs.
template <class T>
T backtrack(const T& ys, const TensorArray& backrefs, const Dim& beam,
            const std::optional<Tensor>& hypotheses = {}) {
  return unflatten(ys, detail::backtrack_arrays(flatten(ys), backrefs, beam, hypotheses,
                                                [&] { return leaf_paths(ys, "ys"); }));
}

}  // namespace reel
