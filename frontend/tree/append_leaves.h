// frontend/tree/append_leaves.h — appends the leaves of a tree to a list.
#pragma once

#include <vector>

#include "reel/frontend/tree/tree.h"

namespace reel::detail {

/// Leaves of trees, one after the other, and where some of them are.
struct AppendedLeaves {
  TreeLeaves& all;
  std::size_t empty = 0;  ///< tensors
  /// The values and indices of SparseTensors: their first size is the number of elements.
  std::vector<std::size_t> any_length = {};
};

/// Appends the leaves of a tree, as flatten returns them.
void append_leaves(AppendedLeaves& leaves, const TreeRef& tree);
/// Does the same, and moves the tensors out of the tree: a second reference to a tensor costs two
/// atomic operations. If it throws, the tensors moved so far are in the leaves.
void append_taken_leaves(AppendedLeaves& leaves, const TreeSlot& tree);

}  // namespace reel::detail
