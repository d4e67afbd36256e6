// distributed/collective_trees.h — collectives on trees: leaves in one call, table rows gathered.
#pragma once

#include <string>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/distributed/collective_ops.h"
#include "reel/frontend/losses/metrics.h"
#include "reel/frontend/optimisers/parameter_group.h"
#include "reel/frontend/sparse/indexed_slices.h"
#include "reel/frontend/tree/tree.h"

REEL_API_BEGIN
namespace reel::detail {

/// The tensors of a tree. An IndexedSlices in it has three places of the list: values, indices,
/// sizes.
struct TreeTensors {
  Tensors tensors;
  OperandPaths paths;
  std::vector<std::size_t> slices;  ///< places of the values of IndexedSlices
};

TreeTensors tensors_in(const TreeRef& tree);
template <class Tree>
TreeTensors tree_tensors(const Tree& tree) {
  return tensors_in(TreeRef(tree));
}
template <class Tree>
Tree with_tree_tensors(const Tree& tree, const Tensors& tensors) {
  return unflatten(tree, with_tensors(flatten(tree), tensors));
}

// These return the tensors with others in their places. Empty Tensors stay.

Tensors all_reduce_tree(const TreeTensors& tree, Reduction how);
/// Also throws DTypeError for leaves that are not floating; ShapeError or DTypeError for a count
/// that is no floating scalar.
Tensors all_reduce_mean_tree(const TreeTensors& tree, const Tensor& count);
Tensors broadcast_tree(const TreeTensors& tree, int root);

/// Returns the gradient with empty Tensors in the places of frozen parameters. groups: of the
/// optimiser of these parameters.
TreeTensors without_frozen(TreeTensors gradient, const GroupOptions& groups);

/// Replaces empty Tensors by the tensors of `others` at the same place.
void fill_empty(Tensors& tensors, const Tensors& others);

/// Returns the sums of all shards' gradients, divided by the sum of their weights; zeros if it is
/// 0. losses, trees: by shard of this rank; trees: gradients of the totals. The mean loss is the
/// last element of the result. Throws ShapeError or DTypeError for a weight that is no scalar of
/// the total's dtype.
Tensors mean_of_shards(const std::vector<Weighted>& losses, const std::vector<TreeTensors>& trees,
                       int shards);

}  // namespace reel::detail
REEL_API_END
