// frontend/tree/append_leaves.h — appends the leaves of a tree to a list.
#pragma once

#include "reel/frontend/tree/tree.h"

namespace reel::detail {

/// Appends the leaves of a tree, as flatten returns them. Returns how many tensors are empty.
std::size_t append_leaves(TreeLeaves& leaves, const TreeRef& tree);
/// Does the same, and moves the tensors out of the tree: a second reference to a tensor costs two
/// atomic operations. If it throws, the tensors moved so far are in the leaves. Requires capacity
/// for all leaves.
std::size_t append_taken_leaves(TreeLeaves& leaves, const TreeSlot& tree);

}  // namespace reel::detail
