#include "reel/frontend/loops/scan_slices.h"

#include <algorithm>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/dims/dim_facts.h"
#include "reel/core/dims/dim_slices.h"
#include "reel/core/op/bind.h"
#include "reel/core/ops/indexing/index.h"
#include "reel/core/ops/list/list.h"
#include "reel/core/ops/loop/loop_types.h"
#include "reel/core/ops/shape/along_axis.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/slice.h"
#include "reel/core/ops/shape/sliced_dims.h"
#include "reel/core/types/dim_expression.h"
#include "reel/frontend/tree/tree.h"

namespace reel {
namespace {

/// Finds dims_with_lengths_along().
class SlicedDims {
 public:
  explicit SlicedDims(const Tensors& xs) {
    for (const Tensor& x : xs)
      if (has_lengths_along(x.type(), 0))
        for (const Dim& dim : x.dims()) add(dim, x.dims());
  }
  const Dims& dims() const { return dims_; }

 private:
  bool add(const Dim& dim, const Dims& of_x) {
    const Dim& along = of_x[0];
    if (dim == along || !dim.is_ragged() || contains(dims_, dim)) return contains(dims_, dim);
    bool runs = false;
    for (const Dim& of : dim.length_dims()) {
      if (!contains(of_x, of)) return false;
      runs = (of == along || add(of, of_x)) || runs;
    }
    if (!runs) return false;
    if (const DimExpression* expression = expression_of(dim)) {
      for (const Dim& of : expression->operands) add(of, of_x);
      return true;
    }
    dims_.push_back(dim);
    return true;
  }

  Dims dims_;
};

}  // namespace

Dims dims_with_lengths_along(const Tensors& xs) { return SlicedDims(xs).dims(); }

Tensor lengths_along(const Dim& dim, const Dim& along) {
  const Tensor lengths = computed_plainly([&] { return dim.lengths(); });
  Dims order;
  if (contains(lengths.dims(), along)) order.push_back(along);
  for (const Dim& of : lengths.dims())
    if (!(of == along)) order.push_back(of);
  return computed_plainly([&] { return transpose_to(lengths, order); });
}

namespace {

/// Returns x with changed dims.
Tensor changed(const Tensor& x, const DimChanges& changes) {
  return changes.affects(x.type()) ? resized(x, changes(x.dims())) : x;
}

/// Changes the Dims among ys.
void change_dims(TreeLeaves& ys, const DimChanges& changes) {
  for (TreeLeaf& leaf : ys)
    if (leaf.kind == TreeLeaf::Kind::dim) leaf.dim = changes(leaf.dim);
}

}  // namespace

bool has_sliced_dims(const ScanPlan& plan) {
  return std::any_of(plan.xs.begin(), plan.xs.end(),
                     [](const Tensor& x) { return has_lengths_along(x.type(), 0); });
}

namespace {

/// A scan over slices that have dims with lengths along the scanned dim. The body sees these dims
/// with the lengths of its slice.
class SlicedScan {
 public:
  SlicedScan(const ScanSpec& spec, const ScanPlan& plan)
      : spec_(spec),
        dims_(dims_with_lengths_along(plan.xs)),
        is_renamed_(spec.cond || spec.max_seq_len),
        inner_(spec) {
    const Dim along = plan.xs[0].dims()[0];
    inner_.xs = with_tensors(spec.xs, plan.xs);
    for (const Dim& dim : dims_) {
      lengths_.push_back(lengths_along(dim, along));
      has_slices_.push_back(contains(lengths_.back().dims(), along));
      if (has_slices_.back()) inner_.xs.push_back(TreeLeaf::of(lengths_.back()));
    }
    inner_.body = [this](const TreeLeaves& x, TreeLeaves state) {
      return step(x, std::move(state));
    };
  }
  SlicedScan(const SlicedScan&) = delete;
  SlicedScan& operator=(const SlicedScan&) = delete;

  ScanResult run() {
    if (!is_renamed_ || spec_.return_tensor_arrays) {
      ScanResult result = run_plan(inner_, make_plan(inner_));
      find_again(result);
      return result;
    }
    stack_lengths();
    ScanResult result = run_plan(inner_, make_plan(inner_));
    rename_ys(result);
    return result;
  }

 private:
  /// Runs the body on one slice.
  ScanStep step(const TreeLeaves& x, TreeLeaves state) {
    DimChanges slices, whole;
    TreeLeaves of_slices;
    std::size_t next = spec_.xs.size();
    for (std::size_t i = 0; i < dims_.size(); ++i) {
      const Dim seen = canonical(dims_[i]);
      const Tensor given = has_slices_[i] ? x[next++].tensor : lengths_[i];
      const Tensor here = computed_plainly([&] { return changed(given, slices); });
      const Dim slice = slice_of_dim(dims_[i], here);
      slices.add(seen, slice);
      whole.add(slice, seen);
      of_slices.push_back(TreeLeaf::of(given));
    }
    TreeLeaves own_x(x.begin(), x.begin() + std::ssize(spec_.xs));
    for (TreeLeaf& leaf : own_x)
      if (leaf.kind == TreeLeaf::Kind::tensor) leaf.tensor = changed(leaf.tensor, slices);
    ScanStep made = spec_.body(own_x, std::move(state));
    own_ys_ = made.y.size();
    if (spec_.return_tensor_arrays) return made;
    note_keys(made.y, whole);
    for (const TreeLeaf& leaf : made.y)
      if (leaf.kind == TreeLeaf::Kind::tensor && leaf.tensor.is_defined())
        add_own(leaf.tensor, whole);
    for (TreeLeaf& leaf : made.y) {
      if (leaf.kind == TreeLeaf::Kind::tensor && leaf.tensor.is_defined())
        leaf.tensor = changed(leaf.tensor, whole);
    }
    change_dims(made.y, whole);
    if (is_renamed_) made.y.insert(made.y.end(), of_slices.begin(), of_slices.end());
    return made;
  }

  /// Notes the slices that the body made, by the dims outside. In the stack they have lengths over
  /// the scanned dim, as a call outside of the loop with the same key has.
  void note_keys(const TreeLeaves& ys, const DimChanges& whole) {
    std::vector<OwnSlice> own;
    for (std::size_t i = 0; i < ys.size(); ++i) {
      if (ys[i].kind != TreeLeaf::Kind::tensor || !ys[i].tensor.is_defined()) continue;
      const TensorType& y = ys[i].tensor.type();
      for (int axis = 0; !y.is_list() && axis < y.rank(); ++axis) {
        const Dim& dim = dim_at(y, axis);
        const std::optional<KnownSlice> known =
            whole.affects(dim) ? std::nullopt : noted_slice(dim);
        if (known) own.push_back({i, axis, whole(known->whole), known->key.with_dims(whole)});
      }
    }
    if (!has_run_) own_ = own;
    has_run_ = true;
    std::erase_if(own_, [&](const OwnSlice& first) {
      return std::ranges::none_of(own, [&](const OwnSlice& here) {
        return here.leaf == first.leaf && here.axis == first.axis &&
               here.whole.node() == first.whole.node() && here.key.bytes() == first.key.bytes();
      });
    });
  }

  static bool is_within(const Dim& dim, const Dim& whole) {
    for (std::optional<Dim> at = whole_of(dim); at; at = whole_of(*at))
      if (at->node() == whole.node()) return true;
    return false;
  }

  /// Gives stacks the slices of equal calls outside of the loop, or lets such calls find theirs.
  void find_again(ScanResult& result) const {
    for (const OwnSlice& own : own_) {
      Tensor& y = result.ys[own.leaf].tensor;
      if (!y.is_defined() || y.type().is_list() || own.axis + 1 >= y.rank()) continue;
      const Dim dim = dim_at(y.type(), own.axis + 1);
      if (!is_within(dim, own.whole)) continue;
      if (const std::optional<Dim> known = known_slice(own.whole, own.key)) {
        DimChanges again;
        again.add(dim, *known);
        y = changed(y, again);
        change_dims(result.ys, again);
      } else {
        note_slice(dim, own.whole, own.whole, own.key);
      }
    }
  }

  /// Adds dims of y that the body made with lengths over a slice: in the stack these run over the
  /// whole dim.
  static void add_own(const Tensor& y, DimChanges& whole) {
    if (y.type().is_list()) return;
    for (const Dim& dim : Dims(y.dims())) {
      if (!dim.is_ragged() || expression_of(dim) || whole.affects(dim)) continue;
      const Tensor lengths = computed_plainly([&] { return changed(dim.lengths(), whole); });
      if (lengths.dims() == dim.length_dims()) continue;
      const Dim own(dim.name(), lengths);
      copy_slice(dim, own);
      whole.add(dim, own);
    }
  }

  /// Declares the lengths that step() returns behind its own ys.
  void stack_lengths() {
    const auto with_lengths = [this](const PathsFn& paths) {
      return [this, &paths] {
        std::vector<std::string> result = paths();
        result.resize(own_ys_ + dims_.size(), "lengths");
        return result;
      };
    };
    inner_.y_paths = with_lengths(spec_.y_paths);
    inner_.first_y_paths = with_lengths(spec_.first_y_paths);
    if (!spec_.ys_types) return;
    for (std::size_t i = 0; i < dims_.size(); ++i)
      inner_.ys_types->push_back(has_slices_[i] ? slice_type(lengths_[i].type())
                                                : lengths_[i].type());
  }

  /// Gives ys the dims with lengths over the new dim, and drops the stacked lengths.
  void rename_ys(ScanResult& result) const {
    DimChanges slices;
    for (std::size_t i = 0; i < dims_.size(); ++i) {
      const Tensor& here = result.ys[own_ys_ + i].tensor;
      slices.add(dims_[i],
                 slice_of_dim(dims_[i], computed_plainly([&] { return changed(here, slices); })));
    }
    result.ys.resize(own_ys_);
    for (TreeLeaf& leaf : result.ys)
      if (leaf.kind == TreeLeaf::Kind::tensor) leaf.tensor = changed(leaf.tensor, slices);
    change_dims(result.ys, slices);
  }

  /// A slice that the body made: its place in ys, and its key outside of the loop.
  struct OwnSlice {
    std::size_t leaf;
    int axis;
    Dim whole;
    SliceKey key;
  };

  const ScanSpec& spec_;
  const Dims dims_;
  /// A loop that finds its own length has a new dim, and the lengths then run over the new dim.
  const bool is_renamed_;
  ScanSpec inner_;
  std::vector<bool> has_slices_;  ///< by dim: its lengths have a slice for each iteration
  Tensors lengths_;               ///< by dim
  std::size_t own_ys_ = 0;        ///< known once the body has run
  bool has_run_ = false;
  std::vector<OwnSlice> own_;  ///< those that all iterations have made
};

}  // namespace

ScanResult scan_sliced_dims(const ScanSpec& spec, const ScanPlan& plan) {
  return SlicedScan(spec, plan).run();
}

namespace {

/// Returns x with all dims of the entries behind the scanned dim: each entry has its own length, so
/// entries read different elements of x.
Tensor with_entries(const Tensor& x, const Dims& entries) {
  Dims dims{x.dims()[0]};
  for (const Dim& dim : entries)
    if (!contains(x.dims(), dim)) dims.push_back(dim);
  if (dims.size() == 1) return x;
  dims.insert(dims.end(), x.dims().begin() + 1, x.dims().end());
  return expand(x, dims);
}

Tensor reversed_entries(const Tensor& x, int axis) {
  return bind(reverse_op, {x}, make_attrs(ReverseAttrs{axis, false}));
}

/// Applies a function along the first axis to all tensors. If several have a dim with lengths over
/// the axis, they get the same slice of it, even if they lack dims of its lengths.
void move_together(AlongAxis& along, Tensors& all) {
  for (const Tensor& x : all) along.slices_of(x.type());
  for (Tensor& x : all) x = along(x, 0);
}

/// Puts the ys of a scan over reversed entries into the order of x. dim: of the ys; back: reverses
/// them.
void reverse_ys(TreeLeaves& ys, const Dim& dim, AlongAxis& back) {
  Tensors all = tensors_of(ys), moved;
  for (const Tensor& given : all) {
    const Tensor y = given.type().is_list() ? list_stack(given, dim) : given;
    const Tensor of_entries = with_entries(y, dim.length_dims());
    moved.push_back(y.rank() == of_entries.rank() ? y : mask_padding(of_entries));
  }
  move_together(back, moved);
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = all[i].type().is_list() ? list_unstack(moved[i]) : moved[i];
  ys = with_tensors(ys, all);
  change_dims(ys, back.changes());
}

/// Returns the dim of xs, before cond or max_seq_len replaces it.
Dim scanned_dim(const ScanSpec& spec, const ScanPlan& plan) {
  return plan.xs.empty() ? canonical(*spec.spatial_dim) : plan.xs[0].dims()[0];
}

}  // namespace

ScanResult scan_reversed_entries(const ScanSpec& spec, const ScanPlan& plan) {
  const Dim along = scanned_dim(spec, plan);
  const Dims entries = along.length_dims();
  ScanSpec inner = spec;
  inner.is_reverse = false;
  AlongAxis forth({along}, reversed_entries, {.keeps_axis = true, .entries = entries});
  Tensors xs;
  for (const Tensor& x : plan.xs) xs.push_back(with_entries(x, entries));
  move_together(forth, xs);
  inner.xs = with_tensors(spec.xs, xs);
  ScanResult result = scan_leaves(inner);
  const bool is_other_dim = spec.cond || spec.max_seq_len;
  const Dim dim = is_other_dim ? canonical(result.dim) : along;
  AlongAxis::Options options{.keeps_axis = true, .entries = dim.length_dims()};
  if (is_other_dim) options.key = [&] { return key_along("reverse", {dim}); };
  AlongAxis back({dim}, reversed_entries, std::move(options));
  if (!is_other_dim)
    for (const Tensor& x : plan.xs)
      for (const Dim& of_x : x.dims())
        if (forth.changes().affects(of_x)) back.add(forth.changes()(of_x), of_x);
  reverse_ys(result.ys, dim, back);
  return result;
}

Tensors initial_slices(const ScanPlan& plan, bool from_end, const char* why) {
  const bool may_be_none = is_made_from_lengths(*plan.dim);
  if (!may_be_none && plan.dim->has_size() && plan.dim->size() == 0)
    throw ArgumentError(str(plan.what, ": xs have no elements", why));
  const Tensor at = !from_end ? scalar(0) : may_be_none ? plan.dim->lengths() - 1 : scalar(-1);
  Tensors result;
  for (const Tensor& x : plan.xs)
    result.push_back(
        gather_for(str(plan.what, ": the first slice"), x, at, 0, {.clip = may_be_none}));
  std::vector<Tensor*> slices;
  for (Tensor& slice : result) slices.push_back(&slice);
  meet_slices(slices);
  return result;
}

}  // namespace reel
