// frontend/loops/state/sparse_invariants.h — shape knowledge about the IndexedSlices and
// SparseTensors in a tree.
//
// A loop's shape invariants have one entry for each of them, which is expanded to its tensors. The
// number of elements of a SparseTensor is known only during a run, for arguments of jit and results
// of branches. (The number of rows of an IndexedSlices is an ordinary size, with an invariant.)
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/types/partial_shape.h"
#include "reel/frontend/sparse/indexed_slices.h"
#include "reel/frontend/sparse/sparse_tensor.h"
#include "reel/frontend/tree/tree.h"

REEL_API_BEGIN
namespace reel::detail {

using Invariants = std::vector<std::optional<PartialShape>>;

/// Returns shape_invariants in the form of loops on leaves: one invariant per tensor. Throws
/// ArgumentError, in the name of the loop, if the number of given invariants differs from the
/// number of the state's leaves, or if an invariant is impossible.
Invariants invariants_for(const std::string& loop, const TreeRef& state, const Invariants& given);

/// In a trace, forgets the numbers of elements of the SparseTensors in a tree.
void forget_lengths(const TreeSlot& tree);
/// Returns the tree; in a trace, with unknown numbers of elements for its SparseTensors.
template <class Tree>
Tree with_any_length(Tree tree) {
  forget_lengths(TreeSlot(tree));
  return tree;
}

}  // namespace reel::detail
REEL_API_END
