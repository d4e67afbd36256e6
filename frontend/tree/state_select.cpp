#include "reel/frontend/tree/state_select.h"

#include <algorithm>

#include "reel/core/dims/dim_changes.h"
#include "reel/core/ops.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/slice.h"
#include "reel/frontend/tree/leaves.h"

namespace reel::detail {
namespace {

bool share_a_dim(const Dims& a, const Dims& b) {
  return std::any_of(a.begin(), a.end(), [&](const Dim& dim) { return contains(b, dim); });
}

/// Returns a dim with the largest of these lengths as its one size. It stands for a ragged dim
/// while the entries that its lengths run over are moved.
Dim longest(const std::string& name, const Tensor& lengths) {
  return Dim(name, computed_plainly([&] { return maximum(max(lengths), 0); }));
}

/// Moves the entries of a tree. `has` selects by dims; `move` moves a tensor of leaf i, or the
/// lengths of a Dim.
///
/// During the move, ragged dims with lengths over the entries are replaced by full ones, so that
/// the padding of an entry moves with it.
template <class Has, class Move>
TreeLeaves moved(TreeLeaves tree, const Has& has, const Move& move) {
  DimChanges to_full, to_new;
  for (std::size_t i = 0; i < tree.size(); ++i) {
    TreeLeaf& leaf = tree[i];
    if (!is_sized_dim(leaf) || !leaf.dim.is_ragged() || !has(leaf.dim.length_dims())) continue;
    const Dim full = longest(leaf.dim.name(), leaf.dim.lengths());
    const Dim next(leaf.dim.name(), computed_plainly([&] { return move(leaf.dim.lengths(), i); }));
    to_full.add(leaf.dim, full);
    to_new.add(full, next);
    leaf.dim = next;
  }
  for (std::size_t i = 0; i < tree.size(); ++i) {
    TreeLeaf& leaf = tree[i];
    if (!is_tensor(leaf) || !has(leaf.tensor.dims())) continue;
    const Tensor result = move(resized(leaf.tensor, to_full(leaf.tensor.dims())), i);
    leaf.tensor = resized(result, to_new(result.dims()));
  }
  return tree;
}

/// Returns the dim of the indices that replaces `dim`, according to the first tensor that has it.
Dim place_of(const TreeLeaves& tree, const Tensor& indices, const Dim& dim) {
  for (const TreeLeaf& leaf : tree) {
    if (!is_tensor(leaf) || !contains(leaf.tensor.dims(), dim)) continue;
    Dims added;
    for (const Dim& of : indices.dims())
      if (of == dim || !contains(leaf.tensor.dims(), of)) added.push_back(of);
    if (added.size() == 1) return added[0];
    throw ShapeError(str("gather_nested: Dim ", dim, " is a leaf, but indices ", indices.type(),
                         " replace it by ", added.size(), " dims in ", leaf.tensor.type(),
                         "; give indices that replace it by one"));
  }
  return dim;
}

}  // namespace

TreeLeaves gather_leaves(TreeLeaves tree, const Tensor& indices, const Dim& dim,
                         const PathsFn& paths) {
  for (TreeLeaf& leaf : tree)
    if (leaf.kind == TreeLeaf::Kind::dim && leaf.dim == dim)
      leaf.dim = place_of(tree, indices, dim);
  return moved(
      std::move(tree), [&](const Dims& dims) { return contains(dims, dim); },
      [&](const Tensor& x, std::size_t place) {
        try {
          return gather(x, indices, dim);
        } catch (Error& error) {
          error.name_function("gather_nested");
          error.add_line(str("of the leaf ", paths()[place]));
          throw;
        }
      });
}

Dim packed_dim(const Tensor& mask) {
  if (mask.dtype() != boolean)
    throw DTypeError(str("pack_nested: the mask must be boolean, got ", mask.type()));
  if (!mask.type().is_named())
    throw ShapeError(str("pack_nested: the mask ", mask.type(),
                         " has plain sizes, by which tensors of a tree cannot be told apart; give "
                         "its axes Dims"));
  return Dim("packed", computed_plainly([&] {
               Tensor count = sum(cast(mask_padding(mask), i32), Axes(mask.dims()));
               return count;
             }));
}

TreeLeaves pack_leaves(TreeLeaves tree, const Tensor& mask, const Dim& packed) {
  const Axes axes(mask.dims());
  return moved(
      std::move(tree), [&](const Dims& dims) { return share_a_dim(dims, mask.dims()); },
      [&](const Tensor& x, std::size_t) { return pack(x, mask, axes, packed); });
}

TreeLeaves unpack_leaves(TreeLeaves tree, const Dim& packed, const Tensor& mask,
                         TreeLeaves backup) {
  const auto unpacked = [&](const Tensor& x, const Tensor& other) {
    return other.is_defined() ? unpack(x, packed, mask, other) : unpack(x, packed, mask);
  };
  DimChanges of_tree, of_backup, to_new;
  for (std::size_t i = 0; i < tree.size(); ++i) {
    TreeLeaf& leaf = tree[i];
    if (!is_sized_dim(leaf) || !contains(leaf.dim.length_dims(), packed)) continue;
    const Dim* other = backup.empty() ? nullptr : &backup[i].dim;
    const Dim next(leaf.dim.name(), computed_plainly([&] {
                     return unpacked(leaf.dim.lengths(), other ? other->lengths() : Tensor());
                   }));
    const Dim full = longest(leaf.dim.name(), next.lengths());
    of_tree.add(leaf.dim, full);
    if (other) of_backup.add(*other, full);
    to_new.add(full, next);
    leaf.dim = next;
  }
  for (std::size_t i = 0; i < tree.size(); ++i) {
    Tensor& x = tree[i].tensor;
    if (!is_tensor(tree[i]) || !contains(x.dims(), packed)) continue;
    Tensor other;
    if (!backup.empty()) other = resized(backup[i].tensor, of_backup(backup[i].tensor.dims()));
    const Tensor result = unpacked(resized(x, of_tree(x.dims())), other);
    x = resized(result, to_new(result.dims()));
  }
  return tree;
}

}  // namespace reel::detail
