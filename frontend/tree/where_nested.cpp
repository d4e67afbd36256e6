// where_nested: a choice between two states, whole or entry by entry.
#include <algorithm>

#include "reel/core/dims/dim_changes.h"
#include "reel/core/functions/unranked.h"
#include "reel/core/graph/graph_builder.h"
#include "reel/core/op/bind.h"
#include "reel/core/ops.h"
#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/control/identity.h"
#include "reel/core/ops/elementwise/elementwise.h"
#include "reel/core/ops/list/list.h"
#include "reel/core/ops/loop/capture_list.h"
#include "reel/core/ops/loop/entries.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/slice.h"
#include "reel/core/types/dim_expression.h"
#include "reel/frontend/tree/leaves.h"
#include "reel/frontend/tree/state_select.h"

namespace reel::detail {
namespace {

struct FindSparse : TreeReader {
  std::vector<std::size_t> found;
  std::size_t leaves = 0;
  void leaf() override { ++leaves; }
  using TreeReader::part;
  void part(const IndexedSlices&) override { add(); }
  void part(const SparseTensor&) override { add(); }
  /// Both have values and indices as their first two members.
  void add() { found.insert(found.end(), {leaves, leaves + 1}); }
};

/// True if the plain sizes may be equal, and if both have the same named dims, in any order.
bool may_be_equal(const Dims& a, const Dims& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool fits = a[i].is_named() ? contains(b, a[i])
                                      : !b[i].is_named() &&
                                            (a[i] == b[i] || !a[i].has_size() || !b[i].has_size());
    if (!fits) return false;
  }
  return true;
}

/// A choice between the leaves of two trees.
class Choice {
 public:
  Choice(const Tensor& mask, const PathsFn& paths) : mask_(mask), paths_(paths) {
    if (mask.dtype() != boolean)
      throw DTypeError(str("where_nested: the mask must be boolean, got ", mask.type()));
  }

  TreeLeaves operator()(TreeLeaves a, TreeLeaves b, const std::vector<std::size_t>& sparse) {
    check_same_kinds("where_nested", a, "in a", b, "in b", paths_);
    choose_dims(a, b);
    if (mask_.rank() && !sparse.empty())
      throw StructureError(
          str("where_nested: ", paths_()[sparse[0]], " is of table rows or of a SparseTensor, ",
              "whose indices are no values, and the mask ", mask_.type(), " selects by entries; ",
              "make it dense, or give a mask without dims"));
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (a[i].kind != TreeLeaf::Kind::tensor || !a[i].tensor.is_defined()) continue;
      const bool is_sparse = std::find(sparse.begin(), sparse.end(), i) != sparse.end();
      if (is_sparse) forget_count(a[i].tensor, b[i].tensor);
      check_types(a[i].tensor.type(), b[i].tensor.type(), i, is_sparse);
    }
    if (mask_.rank())
      choose_entries(a, b);
    else if (is_tracing() || mask_.is_traced())
      choose_in_trace(a, b);
    else
      choose_now(a, b);
    return a;
  }

 private:
  /// The sides may differ in their numbers of rows: in a trace only a run knows the selected one.
  static void forget_count(Tensor& a, Tensor& b) {
    for (Tensor* x : {&a, &b}) {
      if (!x->rank()) continue;
      Dims dims = x->dims();
      dims[0] = Dim::unknown();
      *x = relax_shape(*x, dims);
    }
  }

  // ---- Dims -------------------------------------------------------------------------------------

  /// Replaces Dims of a that differ from b's by new Dims, length dims before the dims over them.
  void choose_dims(TreeLeaves& a, const TreeLeaves& b) {
    std::vector<std::size_t> differ;
    for (std::size_t i = 0; i < a.size(); ++i)
      if (a[i].kind == TreeLeaf::Kind::dim && !(a[i].dim == b[i].dim)) differ.push_back(i);
    std::stable_sort(differ.begin(), differ.end(), [&](std::size_t i, std::size_t j) {
      return depth_of(a[i].dim) < depth_of(a[j].dim);
    });
    for (const std::size_t i : differ) {
      if (!is_sized_dim(a[i]) || !is_sized_dim(b[i]))
        throw StructureError(str("where_nested: ", paths_()[i], " is ", print(a[i]), " in a, and ",
                                 print(b[i]), " in b; only named Dims with sizes may differ"));
      const Dim next = of_a_(a[i].dim);
      if (next == of_b_(b[i].dim)) {  // of a pair that was chosen already, or computed from one
        a[i].dim = next;
        continue;
      }
      const Dim chosen(a[i].dim.name(), lengths(a[i].dim, b[i].dim));
      of_a_.add(a[i].dim, chosen);
      of_b_.add(b[i].dim, chosen);
      a[i].dim = chosen;
    }
  }

  /// Returns a's lengths if the mask holds, otherwise b's.
  Tensor lengths(const Dim& a, const Dim& b) const {
    return computed_plainly([&] {
      const Tensor x = resized(a.lengths(), of_a_(a.length_dims())),
                   y = resized(b.lengths(), of_b_(b.length_dims()));
      const auto is_masked = [&](const Dim& dim) { return contains(mask_.dims(), dim); };
      if (std::any_of(x.dims().begin(), x.dims().end(), is_masked) && x.dims() == y.dims())
        return keep_finished(x, y, mask_);
      Dims over = mask_.dims();
      for (const Tensor* more : {&x, &y})
        for (const Dim& dim : more->dims())
          if (!contains(over, dim)) over.push_back(dim);
      return where(expand(mask_, over), x, y);
    });
  }

  void check_types(const TensorType& a, const TensorType& b, std::size_t i, bool is_sparse) const {
    if (a.dtype() != b.dtype())
      throw DTypeError(
          str("where_nested: ", paths_()[i], " is ", a, " in a, and ", b, " in b: dtypes differ"));
    if (a.is_unranked() || b.is_unranked()) return;
    const auto without_count = [&](const Dims& dims) {
      return is_sparse && !dims.empty() ? Dims(dims.begin() + 1, dims.end()) : dims;
    };
    const bool keeps_dims = a.is_list() && mask_.rank();  // a's, although entries may come from b
    const bool fits =
        keeps_dims ? may_be_equal(a.dims(), b.dims())
                   : may_be_equal(without_count(of_a_(a.dims())), without_count(of_b_(b.dims())));
    if (!fits || a.rank() != b.rank())
      throw ShapeError(str("where_nested: ", paths_()[i], " is ", a, " in a, and ", b,
                           " in b: ", dims_differ(a, b)));
  }

  // ---- A mask without dims ----------------------------------------------------------------------

  Tensor with_dims(const Tensor& x, const DimChanges& changes, const Dims& order) const {
    if (x.type().is_list())
      return changes.affects(x.type()) ? list_resized(x, changes(x.dims())) : x;
    const Tensor result = resized(x, changes(x.dims()));
    return result.dims() == order || !result.type().is_named() ? result : transpose(result, order);
  }

  void choose_now(TreeLeaves& a, const TreeLeaves& b) const {
    const bool first = mask_.item<bool>();
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (a[i].kind != TreeLeaf::Kind::tensor || !a[i].tensor.is_defined()) continue;
      const Dims order = of_a_(a[i].tensor.dims());
      const Tensor chosen =
          first ? with_dims(a[i].tensor, of_a_, order) : with_dims(b[i].tensor, of_b_, order);
      a[i].tensor =
          thread_mode.tape ? as_state(chosen) : chosen;  // sums cotangents as a trace does
    }
  }

  /// Returns true for values that a cond selects: where needs operands of equal sizes.
  static bool needs_cond(const Tensor& x) {
    return x.type().is_list() || std::any_of(x.dims().begin(), x.dims().end(), is_unknown);
  }

  void choose_in_trace(TreeLeaves& a, const TreeLeaves& b) const {
    Tensors of_a, of_b;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (a[i].kind != TreeLeaf::Kind::tensor || !a[i].tensor.is_defined()) continue;
      const Dims order = of_a_(a[i].tensor.dims());
      const Tensor x = with_dims(a[i].tensor, of_a_, order),
                   y = with_dims(b[i].tensor, of_b_, order);
      if (!needs_cond(x) && !needs_cond(y)) {
        a[i].tensor = select_whole(mask_, x, y);
        continue;
      }
      const bool is_open = is_unranked(x) || is_unranked(y);
      of_a.push_back(is_open ? as_unranked(x) : x);
      of_b.push_back(is_open ? as_unranked(y) : y);
      places.push_back(i);
    }
    if (places.empty()) return;
    const Tensors chosen = cond(of_a, of_b);
    for (std::size_t k = 0; k < places.size(); ++k) a[places[k]].tensor = chosen[k];
  }

  /// Binds cond_op directly: the public cond draws a stream of random numbers.
  Tensors cond(const Tensors& a, const Tensors& b) const {
    CaptureList captures;
    const auto record = [&](const char* name, const Tensors& results, std::vector<int>& places) {
      GraphBuilder builder(name, str("side ", name, " of where_nested"));
      ModeScope scope(builder.scope());
      const SubGraph graph = make_sub_graph(builder.finish(results));
      places = captures.add(builder.captured());
      return graph;
    };
    CondAttrs attrs;
    attrs.on_true = record("a", a, attrs.true_captures);
    attrs.on_false = record("b", b, attrs.false_captures);
    Tensors inputs{mask_};
    inputs.insert(inputs.end(), captures.tensors().begin(), captures.tensors().end());
    return bind_all(cond_op, inputs, make_attrs(std::move(attrs)));
  }

  // ---- A mask over entries ----------------------------------------------------------------------

  void choose_entries(TreeLeaves& a, const TreeLeaves& b) const {
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (!is_tensor(a[i])) continue;
      Tensor& x = a[i].tensor;
      const Tensor& y = b[i].tensor;
      if (x.rank() && !x.type().is_named())
        x = plain_where(x, y, i);
      else
        x = keep_finished(resized(x, of_a_(x.dims())), resized(y, of_b_(y.dims())), mask_);
    }
  }

  /// where for leaf i of plain sizes: the mask is over its leading axes.
  Tensor plain_where(const Tensor& a, const Tensor& b, std::size_t i) const {
    if (mask_.type().is_named()) return a;
    std::vector<Axis> missing;
    for (int axis = a.rank(); axis < mask_.rank(); ++axis) missing.emplace_back(axis);
    const Tensor mask = missing.empty() ? mask_ : any(mask_, Axes(missing));
    Dims dims = mask.dims();
    for (std::size_t axis = 0; axis < dims.size(); ++axis) {
      const Dim &masked = dims[axis], &own = a.dims()[axis];
      if (masked.has_size() && own.has_size() && masked != own && masked != Dim(1) && own != Dim(1))
        throw ShapeError(str("where_nested: ", paths_()[i], " is ", a.type(), ", and the mask ",
                             mask_.type(), "; sizes of axis ", axis, " differ"));
    }
    dims.resize(static_cast<std::size_t>(a.rank()), Dim(1));
    return where(reshape(mask, dims), a, b);
  }

  const Tensor& mask_;
  const PathsFn& paths_;
  DimChanges of_a_, of_b_;  ///< from Dims of a and b to the selected ones
};

}  // namespace

std::vector<std::size_t> sparse_leaves(const TreeRef& tree) {
  FindSparse find;
  tree.read(find);
  return std::move(find.found);
}

TreeLeaves where_leaves(const Tensor& mask, TreeLeaves a, TreeLeaves b,
                        const std::vector<std::size_t>& sparse, const PathsFn& paths) {
  return Choice(mask, paths)(std::move(a), std::move(b), sparse);
}

}  // namespace reel::detail
