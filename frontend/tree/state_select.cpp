#include "reel/frontend/tree/state_select.h"

#include <algorithm>

#include "reel/core/dims/dim_changes.h"
#include "reel/core/dims/dim_slices.h"
#include "reel/core/op/op_errors.h"
#include "reel/core/ops.h"
#include "reel/core/ops/indexing/pack.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/slice.h"
#include "reel/core/ops/shape/sliced_dims.h"
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

/// Returns the leaves that are Dims, and the leaves that are tensors behind them. A Dim comes after
/// those that its lengths run over, and after those that it was computed from.
std::vector<std::size_t> dims_first(const TreeLeaves& tree) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < tree.size(); ++i)
    if (is_sized_dim(tree[i])) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) {
    return depth_of(tree[i].dim) < depth_of(tree[j].dim);
  });
  for (std::size_t i = 0; i < tree.size(); ++i)
    if (is_tensor(tree[i])) order.push_back(i);
  return order;
}

/// Moves the entries of a tree. `has` selects by dims; `move` moves a tensor of leaf i, or the
/// lengths of a Dim; `make` returns the new Dim for one and its moved lengths. Dims in `axes` stay.
///
/// During the move, ragged dims with lengths over the entries are replaced by full ones, so that
/// the padding of an entry moves with it.
template <class Has, class Move, class Make>
TreeLeaves moved(TreeLeaves tree, const Dims& axes, const Has& has, const Move& move,
                 const Make& make) {
  DimChanges to_full, to_new;
  const auto move_all = [&](const Tensor& x, std::size_t i) {
    const Tensor result = move(resized(x, to_full(x.dims())), i);
    return resized(result, to_new(result.dims()));
  };
  for (const std::size_t i : dims_first(tree)) {
    TreeLeaf& leaf = tree[i];
    if (is_tensor(leaf)) {
      if (has(leaf.tensor.dims())) leaf.tensor = move_all(leaf.tensor, i);
    } else if (to_full.affects(leaf.dim)) {
      leaf.dim = to_new(to_full(leaf.dim));
    } else if (leaf.dim.is_ragged() && !contains(axes, leaf.dim) && has(leaf.dim.length_dims())) {
      const Dim next =
          make(leaf.dim, computed_plainly([&] { return move_all(leaf.dim.lengths(), i); }));
      const Dim full = longest(leaf.dim.name(), leaf.dim.lengths());
      to_full.add(leaf.dim, full);
      to_new.add(full, next);
      leaf.dim = next;
    }
  }
  return tree;
}

/// Returns move(), or throws its error in the name of `function`, with the leaf.
template <class Move>
Tensor of_leaf(const char* function, const PathsFn& paths, std::size_t i, const Move& move) try {
  return move();
} catch (Error& error) {
  error.name_function(function);
  error.add_line(str("of the leaf ", paths()[i]));
  throw;
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
      std::move(tree), {dim}, [&](const Dims& dims) { return contains(dims, dim); },
      [&](const Tensor& x, std::size_t i) {
        return of_leaf("gather_nested", paths, i, [&] { return gather(x, indices, dim); });
      },
      [](const Dim& of, const Tensor& lengths) { return Dim(of.name(), lengths); });
}

namespace {

void check_mask(const char* function, const Tensor& mask) {
  check_defined(function, mask);
  if (mask.dtype() != boolean)
    throw DTypeError(str(function, ": the mask must be boolean, got ", mask.type()));
  if (!mask.type().is_named())
    throw ShapeError(str(function, ": the mask ", mask.type(),
                         mask.rank() ? " has plain sizes, by which tensors of a tree cannot be "
                                       "told apart; give its axes Dims"
                                     : " has no dims; give it the dims of the entries"));
}

}  // namespace

Dim packed_dim(const Tensor& mask) {
  check_mask("pack_nested", mask);
  return Dim("packed", computed_plainly([&] {
               Tensor count = sum(cast(mask_padding(mask), i32), Axes(mask.dims()));
               return count;
             }));
}

namespace {

/// Returns x expanded along dims of the mask that it lacks, behind the first one that it has.
Tensor with_masked_dims(const Tensor& x, const Dims& masked) {
  const auto is_missing = [&](const Dim& dim) { return !contains(x.dims(), dim); };
  if (std::none_of(masked.begin(), masked.end(), is_missing)) return x;
  Dims dims;
  for (const Dim& dim : x.dims())
    if (!contains(masked, dim))
      dims.push_back(dim);
    else if (!contains(dims, dim))
      dims.insert(dims.end(), masked.begin(), masked.end());
  return expand(x, dims);
}

}  // namespace

TreeLeaves pack_leaves(TreeLeaves tree, const Tensor& mask, const Dim& packed,
                       const PathsFn& paths) {
  return moved(
      std::move(tree), mask.dims(),
      [&](const Dims& dims) { return share_a_dim(dims, mask.dims()); },
      [&](const Tensor& x, std::size_t i) {
        return of_leaf("pack_nested", paths, i, [&] {
          return pack(with_masked_dims(x, mask.dims()), mask, mask.dims(), packed);
        });
      },
      [&](const Dim& of, const Tensor& lengths) {
        return slice_of_dim(of, lengths, key_of_packing(mask, packed));
      });
}

namespace {

/// unpack for a tree, and for a backup of the same structure, if there is one.
class Unpacking {
 public:
  Unpacking(const Dim& packed, const Tensor& mask, const TreeLeaves& backup, const PathsFn& paths)
      : packed_(packed), mask_(mask), backup_(backup), paths_(paths) {}

  TreeLeaves operator()(TreeLeaves tree) {
    if (!backup_.empty())
      check_same_kinds("unpack_nested", tree, "in the tree", backup_, "in the backup", paths_);
    for (const std::size_t i : dims_first(tree))
      if (is_tensor(tree[i]))
        unpack_tensor(tree[i].tensor, i);
      else
        tree[i].dim = unpacked_dim(tree, i);
    return tree;
  }

 private:
  /// Returns true if the entries of some tensor have the dim.
  bool is_of_entries(const Dim& dim, const TreeLeaves& tree) const {
    return std::any_of(tree.begin(), tree.end(), [&](const TreeLeaf& leaf) {
      return is_tensor(leaf) && contains(leaf.tensor.dims(), packed_) &&
             contains(leaf.tensor.dims(), dim);
    });
  }

  Dim unpacked_dim(const TreeLeaves& tree, std::size_t i) {
    const Dim dim = tree[i].dim;
    const Dim* const other = backup_.empty() ? nullptr : &backup_[i].dim;
    if (other && !is_sized_dim(backup_[i]))
      throw StructureError(str("unpack_nested: ", paths_()[i], " is ", print(tree[i]),
                               " in the tree, and ", print(backup_[i]), " in the backup; ",
                               "only named Dims with sizes may differ"));
    if (of_tree_.affects(dim) && (!other || of_backup_(*other) == of_tree_(dim)))
      return to_new_(of_tree_(dim));
    const bool has_packed = contains(dim.length_dims(), packed_);
    if (!has_packed && (!other || *other == dim || !is_of_entries(dim, tree))) return dim;
    if (const auto original = whole_of_known(dim, key_of_packing(mask_, packed_));
        other && original && canonical(*other) == canonical(*original)) {
      of_tree_.add(dim, *other);
      return *other;
    }
    const Tensor lengths = computed_plainly([&] {
      Tensor own = dim.lengths();
      if (!has_packed) {
        Dims dims = own.dims();
        dims.insert(dims.begin(), packed_);
        own = expand(own, dims);
      }
      return unpacked(own, other ? other->lengths() : Tensor(), i);
    });
    const Dim next(dim.name(), lengths), full = longest(dim.name(), lengths);
    of_tree_.add(dim, full);
    if (other) of_backup_.add(*other, full);
    to_new_.add(full, next);
    return next;
  }

  void unpack_tensor(Tensor& x, std::size_t i) {
    if (!contains(x.dims(), packed_)) return;
    const Tensor other = backup_.empty() ? Tensor() : backup_[i].tensor;
    x = unpacked(x, other, i);
    if (other.is_defined() && may_transpose(x.dims(), other.dims())) x = transpose(x, other.dims());
  }

  Tensor unpacked(const Tensor& x, const Tensor& other, std::size_t i) const {
    return of_leaf("unpack_nested", paths_, i, [&] {
      const Tensor from = resized(x, of_tree_(x.dims()));
      Tensor result;
      if (other.is_defined())
        result = unpack(from, packed_, mask_, resized(other, of_backup_(other.dims())));
      else
        result = unpack(from, packed_, mask_);
      return resized(result, to_new_(result.dims()));
    });
  }

  static bool may_transpose(const Dims& a, const Dims& b) {
    return a != b && std::is_permutation(a.begin(), a.end(), b.begin(), b.end());
  }

  const Dim& packed_;
  const Tensor& mask_;
  const TreeLeaves& backup_;
  const PathsFn& paths_;
  DimChanges of_tree_, of_backup_, to_new_;
};

}  // namespace

TreeLeaves unpack_leaves(TreeLeaves tree, const Dim& packed, const Tensor& mask,
                         const TreeLeaves& backup, const PathsFn& paths) {
  check_mask("unpack_nested", mask);
  return Unpacking(packed, mask, backup, paths)(std::move(tree));
}

}  // namespace reel::detail
