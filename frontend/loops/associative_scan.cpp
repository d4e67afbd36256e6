#include "reel/frontend/loops/associative_scan.h"

#include <algorithm>
#include <optional>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/ops.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/slice.h"
#include "reel/core/runtime/random.h"
#include "reel/frontend/loops/while_loop.h"

namespace reel::detail {
namespace {

constexpr std::string_view kName = "associative_scan";

/// Recursive doubling: after the round of distance d, each element is the result of the 2 d
/// elements up to it. Every round combines elements at distance d and keeps the first d.
class Doubling {
 public:
  explicit Doubling(const AssociativeScanSpec& spec) : spec_(spec) {
    for (const TreeLeaf& leaf : spec.xs) {
      axes_.push_back(-1);
      if (leaf.kind != TreeLeaf::Kind::tensor) continue;
      check_leaf(leaf);
      axes_.back() = spec.time.in(leaf.tensor, kName);
      take_dim(leaf.tensor.type(), axes_.back());
    }
    if (!dim_) throw ArgumentError(str(kName, ": xs hold no tensor"));
  }

  TreeLeaves run() const {
    TreeLeaves ys = spec_.xs;
    // identity() makes values of their own, as the state of a loop has: gradients then add in one
    // order whether or not the size is known.
    for (TreeLeaf& leaf : ys)
      if (leaf.kind == TreeLeaf::Kind::tensor && is_float(leaf.tensor.dtype()))
        leaf.tensor = identity(leaf.tensor);
    if (const std::optional<std::int64_t> count = known_count()) {
      RandomScope random;  // as the loop has: later draws are the same
      std::int64_t number = 0;
      for (std::int64_t distance = 1; distance < *count; distance *= 2) {
        random.begin(number++);
        ys = round(ys, Distance{distance, Tensor()});
      }
    } else {
      ys = run_as_loop(std::move(ys));
    }
    for (TreeLeaf& leaf : ys)
      if (leaf.kind == TreeLeaf::Kind::tensor) leaf.tensor = mask_padding(leaf.tensor);
    return ys;
  }

 private:
  /// The distance of a round: a number, or a scalar (i32) in a loop.
  struct Distance {
    std::int64_t number;
    Tensor tensor;
    Tensor as_tensor() const { return tensor.is_defined() ? tensor : scalar(number, i32); }
  };

  std::string path(std::size_t i) const { return spec_.paths()[i]; }

  static void check_leaf(const TreeLeaf& leaf) {
    check_defined(kName, leaf.tensor);
    check_ranked(leaf.tensor);
    if (leaf.tensor.type().is_list())
      throw DTypeError(str(kName, ": xs hold a TensorArray; give it as a tensor, with stack()"));
  }

  /// Takes the dim of the first leaf, and requires the same dim in all others.
  void take_dim(const TensorType& type, int axis) {
    const Dim& dim = dim_at(type, axis);
    const std::size_t leaf = axes_.size() - 1;
    if (!dim_) {
      dim_ = dim;
      first_ = leaf;
    } else if (!(*dim_ == dim) && (dim.is_named() || (dim.has_size() && dim_->has_size()))) {
      throw ShapeError(str(kName, ": ", path(first_), " has ", *dim_, " elements along the axis, ",
                           path(leaf), ' ', type, " has ", dim));
    }
    if (dim.is_named() && lengths_run_over(type, {axis}))
      throw ShapeError(str(kName, ": lengths of another dim of ", path(leaf), ' ', type,
                           " run over ", axis_name(type, axis),
                           ", so that its elements differ in shape; scan() takes them one by one"));
  }

  /// Returns the number of elements; nullopt if only a run knows it. Throws ShapeError for a plain
  /// axis then.
  std::optional<std::int64_t> known_count() const {
    if (dim_->has_size()) return dim_->size();
    if (!dim_->is_named())
      throw ShapeError(str(kName, ": the size of the axis of ", path(first_), ' ',
                           spec_.xs[first_].tensor.type(),
                           " is not known in the trace; name it: give the tensor a named Dim"));
    const Tensor extent = reel::extent_of(*dim_);
    if (extent.is_traced()) return std::nullopt;
    return extent.item<std::int64_t>();
  }

  TreeLeaves run_as_loop(TreeLeaves ys) const {
    const Tensor count = cast(reel::extent_of(*dim_), i32);
    WhileSpec loop;
    loop.name = kName;
    loop.initial = std::move(ys);
    loop.initial.push_back(TreeLeaf::of(scalar(1, i32)));
    loop.cond = [&](const TreeLeaves& state) {
      return LoopCondition{std::nullopt, state.back().tensor < count};
    };
    loop.body = [&](const TreeLeaves& state) {
      TreeLeaves next(state.begin(), state.end() - 1);
      const Tensor distance = state.back().tensor;
      next = round(next, Distance{0, distance});
      next.push_back(TreeLeaf::of(distance * 2));
      return next;
    };
    loop.paths = [&] {
      std::vector<std::string> paths = spec_.paths();
      paths.emplace_back("distance");
      return paths;
    };
    loop.returned_paths = loop.paths;
    TreeLeaves result = while_loop_leaves(loop);
    result.pop_back();
    return result;
  }

  /// Returns the dim of the elements that have a partner at the distance.
  Dim dim_of_pairs(const Distance& distance) const {
    if (!distance.tensor.is_defined() && dim_->has_size() && !dim_->is_ragged()) {
      const std::int64_t size = dim_->size() - distance.number;
      return dim_->is_named() ? Dim(dim_->name(), size) : Dim(size);
    }
    return Dim(dim_->name(), computed_plainly([&] {
                 return maximum(dim_->lengths() - distance.as_tensor(), 0);
               }));
  }

  TreeLeaves round(const TreeLeaves& ys, const Distance& distance) const {
    const Dim pairs = dim_of_pairs(distance);
    // shift() reads at its offset.
    const Tensor none = scalar(0, i32), ahead = distance.as_tensor(), back = neg(ahead);
    // The elements nearer to the beginning of the walk, and those that their results go to.
    const auto operands = [&](bool has_results) {
      TreeLeaves leaves = ys;
      const bool is_behind = has_results != spec_.reverse;
      for (std::size_t i = 0; i < leaves.size(); ++i)
        if (axes_[i] >= 0)
          leaves[i].tensor = shift(ys[i].tensor, is_behind ? ahead : none, axes_[i], pairs);
        else if (leaves[i].kind == TreeLeaf::Kind::dim && leaves[i].dim == *dim_)
          leaves[i].dim = pairs;
      return leaves;
    };
    const TreeLeaves before = operands(false), after = operands(true);
    TreeLeaves combined = spec_.op(before, after);
    check_returned(after, combined);
    TreeLeaves result = ys;
    for (std::size_t i = 0; i < result.size(); ++i)
      if (axes_[i] >= 0)
        result[i].tensor = where(
            is_kept(ys[i].tensor.type(), axes_[i], ahead), ys[i].tensor,
            shift(in_order(combined[i].tensor, after[i].tensor.dims()), spec_.reverse ? none : back,
                  axes_[i], dim_at(ys[i].tensor.type(), axes_[i])));
    return result;
  }

  static Tensor in_order(const Tensor& x, const Dims& dims) {
    return x.dims() == dims ? x : transpose(x, Axes(dims));
  }

  /// Returns, for a type's elements along the axis, if they have no partner: broadcasts to it.
  Tensor is_kept(const TensorType& type, int axis, const Tensor& distance) const {
    const Dim& dim = dim_at(type, axis);
    if (!dim.is_named()) {
      const Tensor position = range(dim.size());
      const Tensor kept =
          spec_.reverse ? position >= scalar(dim.size(), i32) - distance : position < distance;
      Dims ones(static_cast<std::size_t>(type.rank() - axis), Dim(1));
      ones[0] = dim;
      return reshape(kept, ones);
    }
    if (!spec_.reverse) return range(dim) < distance;
    if (!has_its_lengths(type, axis))
      return range(dim) >= cast(reel::extent_of(dim), i32) - distance;
    const Tensor lengths = dim.lengths();
    Dims dims;  // in the order of the type: where() returns the dims in the order of its operands
    for (const Dim& of : type.dims())
      if (of == dim || contains(lengths.dims(), of)) dims.push_back(of);
    return expand(range(dim), dims) >= lengths - distance;
  }

  /// Throws unless op returned a tree of the types that it was called with.
  void check_returned(const TreeLeaves& expected, const TreeLeaves& returned) const {
    constexpr std::string_view kWhat = ": op returns other types than it is called with";
    constexpr std::string_view kAdvice =
        "\nop returns a tree of the types of its arguments, with their Dim of the axis.";
    if (!same_structure(expected, returned))
      throw StructureError(str(kName, kWhat,
                               structure_differences(expected, spec_.paths, returned,
                                                     spec_.returned_paths, "its result"),
                               kAdvice));
    std::string lines;
    bool differs_in_dtype = false;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (axes_[i] < 0) continue;
      const TensorType &from = expected[i].tensor.type(), &to = returned[i].tensor.type();
      const bool has_dims =
          from.is_named()
              ? from.rank() == to.rank() &&
                    std::is_permutation(from.dims().begin(), from.dims().end(), to.dims().begin())
              : from.dims() == to.dims();
      if (from.dtype() == to.dtype() && has_dims) continue;
      differs_in_dtype = differs_in_dtype || from.dtype() != to.dtype();
      lines += str(
          "\n  ", path(i), ": ", print(expected[i]), " going in, ", print(returned[i]),
          " coming out (",
          from.dtype() != to.dtype() ? std::string("dtypes differ") : dims_differ(from, to), ")");
    }
    if (lines.empty()) return;
    const std::string text = str(kName, kWhat, lines, kAdvice);
    if (differs_in_dtype) throw DTypeError(text);
    throw ShapeError(text);
  }

  const AssociativeScanSpec& spec_;
  std::vector<int> axes_;  ///< by leaf; -1 for a leaf that is no tensor
  std::optional<Dim> dim_;
  std::size_t first_ = 0;  ///< the leaf that dim_ comes from
};

}  // namespace

TreeLeaves associative_scan_leaves(const AssociativeScanSpec& spec) { return Doubling(spec).run(); }

}  // namespace reel::detail
