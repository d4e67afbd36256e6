// frontend/tree/append_leaves.h — appends the leaves of a tree to a list.
#pragma once

#include "reel/frontend/tree/tree.h"

namespace reel::detail {

/// Appends the leaves of a tree, as flatten returns them.
void append_leaves(TreeLeaves& leaves, const TreeRef& tree);
/// Appends them with empty tensors. Returns how many tensors of the tree are defined. A reference
/// to a tensor costs two atomic operations, so that a caller who moves the tensors into the leaves
/// should not make one first.
std::size_t append_leaves_without_tensors(TreeLeaves& leaves, const TreeRef& tree);

}  // namespace reel::detail
