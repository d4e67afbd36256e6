// Checks y of scan's body against the template, or against the first iteration.
#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/frontend/loops/scan_leaves.h"
#include "reel/frontend/loops/varying_ys.h"

namespace reel {
namespace {

enum class Difference { none, dims, dtypes, structure };

bool is_leaf(const TreeLeaf& leaf) {
  return leaf.kind == TreeLeaf::Kind::tensor || leaf.kind == TreeLeaf::Kind::none;
}

Difference difference(const TensorType& y, const TensorType& wanted) {
  if (y.dtype() != wanted.dtype()) return Difference::dtypes;
  bool fits = y.rank() == wanted.rank();
  for (const Dim& dim : wanted.dims())
    fits = fits && (!(dim.is_named() || dim.has_size()) || contains(y.dims(), dim));
  return fits ? Difference::none : Difference::dims;
}

/// Collects the differences of y, one line per leaf, and throws them as one error.
class Objections {
 public:
  void add(const std::string& path, const std::string& given, const std::string& wanted,
           Difference how, const std::string& why = "") {
    lines_ += str("\n  ", path, ": ", given, " coming out, ", wanted, " wanted", why);
    worst_ = std::max(worst_, how);
  }
  void add(const std::string& path, const TensorType& given, const TensorType& wanted,
           Difference how) {
    add(path, str(given), str(wanted), how,
        how == Difference::dtypes ? " (dtypes differ)"
                                  : str(" (", detail::dims_differ(given, wanted), ')'));
  }
  void throw_if_any(const std::string& what, bool is_first) const {
    if (worst_ == Difference::none) return;
    const std::string text =
        is_first ? str(what, ": y of the body differs from the template ys", lines_,
                       "\nReturn y as ys says, or leave ys out: a template is not needed.")
                 : str(what, ": y of the body differs from y of the first iteration", lines_,
                       "\nReturn the same type of y in every iteration.");
    if (worst_ == Difference::structure) throw StructureError(text);
    if (worst_ == Difference::dtypes) throw DTypeError(text);
    throw ShapeError(text);
  }

 private:
  std::string lines_;
  Difference worst_ = Difference::none;
};

std::string print(const std::optional<TensorType>& type) { return type ? str(*type) : "None"; }

[[noreturn]] void refuse_array(const ScanPlan& plan, const std::string& path,
                               const TensorType& type) {
  throw StructureError(str(plan.what, ": ", path, " is a TensorArray (", type,
                           "), which cannot be stacked; return its stack(), or keep the array in "
                           "the state"));
}

/// Returns y with the dims of the first iteration in place of static dims that the body makes each
/// time.
Tensor with_dims_of_first(const ScanPlan& plan, Tensor y, const TensorType& first) {
  y = with_static_dims_of(first, std::move(y));
  for (int axis = 0; axis < y.rank() && y.rank() == first.rank(); ++axis) {
    const Dim &mine = y.dims()[axis], &wanted = first.dims()[axis];
    const bool is_of_body =
        mine.is_named() && mine.name() == wanted.name() && !contains(first.dims(), mine);
    // Lengths may differ between iterations: if y does not fit, another axis is at fault.
    if (is_of_body && is_static(mine) && is_static(wanted) && mine.size() != wanted.size())
      refuse_dim_of_body(plan, y.type(), mine);
  }
  return y;
}

/// The leaves of y that are tensors or None, with their paths.
struct Leaves {
  std::vector<TreeLeaf*> leaves;
  std::vector<std::string> paths;
};
Leaves leaves_of(TreeLeaves& ys, const std::vector<std::string>& paths) {
  Leaves result;
  for (std::size_t i = 0; i < ys.size(); ++i) {
    if (!is_leaf(ys[i])) continue;
    result.leaves.push_back(&ys[i]);
    result.paths.push_back(paths[i]);
  }
  return result;
}

/// Throws StructureError unless the template and y have tensors and None at the same places.
void check_structure(const ScanSpec& spec, const ScanPlan& plan, const Leaves& y) {
  const auto& wanted = *spec.ys_types;
  bool fits = wanted.size() == y.leaves.size();
  for (std::size_t i = 0; fits && i < wanted.size(); ++i)
    fits = wanted[i].has_value() == (y.leaves[i]->kind == TreeLeaf::Kind::tensor);
  if (fits) return;
  const std::vector<std::string> names = spec.ys_paths();
  Objections objections;
  std::vector<bool> used(y.leaves.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    std::size_t j = 0;
    while (j < y.leaves.size() && y.paths[j] != names[i]) ++j;
    if (j < y.leaves.size()) used[j] = true;
    const bool is_tensor = j < y.leaves.size() && y.leaves[j]->kind == TreeLeaf::Kind::tensor;
    if (j < y.leaves.size() && is_tensor == wanted[i].has_value()) continue;
    objections.add(names[i], j < y.leaves.size() ? detail::print(*y.leaves[j]) : "nothing",
                   print(wanted[i]), Difference::structure);
  }
  for (std::size_t j = 0; j < y.leaves.size(); ++j)
    if (!used[j])
      objections.add(y.paths[j], detail::print(*y.leaves[j]), "nothing", Difference::structure);
  objections.throw_if_any(plan.what, true);
  throw StructureError(str(plan.what, ": y of the body has ", y.leaves.size(),
                           " leaves, the template ys ", wanted.size()));
}

/// Throws ShapeError unless y's dims are named if and only if the stacking dim is.
void check_names(const ScanSpec& spec, const ScanPlan& plan, const TreeLeaves& ys) {
  if (spec.return_tensor_arrays) return;
  const bool is_named =
      plan.makes_dim ? !name_of_made_dim(plan, ys).empty() : plan.dim && plan.dim->is_named();
  std::string lines;
  for (std::size_t i = 0; i < ys.size(); ++i) {
    if (ys[i].kind != TreeLeaf::Kind::tensor || !ys[i].tensor.is_defined()) continue;
    const TensorType& type = ys[i].tensor.type();
    if (type.rank() && type.is_named() != is_named)
      lines += str("\n  ", spec.y_paths()[i], ": ", type, ", whose dims ",
                   is_named ? "have no names" : "are named");
  }
  if (lines.empty()) return;
  if (is_named)
    throw ShapeError(str(plan.what, ": ys are stacked along a dim with a name, ",
                         plan.dim && !plan.makes_dim ? str(*plan.dim) : plan.new_dim,
                         ", but not all y have named dims", lines,
                         "\nGive every axis of y a Dim with a name, or let xs, state and "
                         "spatial_dim have none."));
  throw ShapeError(
      str(plan.what, ": ys are stacked along a dim without a name, but not all y have plain sizes",
          lines, "\nName spatial_dim and the scanned axes, as in Dim(\"time\", 3)."));
}

/// Returns the dim of the stack whose element has the dim; nothing if no element has it.
std::optional<Dim> stacked_dim(const Dim& dim, const TreeLeaves& of_body, const TreeLeaves& ys) {
  for (std::size_t i = 0; i < of_body.size(); ++i) {
    if (of_body[i].kind != TreeLeaf::Kind::tensor || !of_body[i].tensor.is_defined()) continue;
    const TensorType &element = of_body[i].tensor.type(), &stack = ys[i].tensor.type();
    if (stack.is_list() || stack.rank() != element.rank() + 1) continue;
    for (int axis = 0; axis < element.rank(); ++axis)
      if (dim_at(element, axis) == dim) return dim_at(stack, axis + 1);
  }
  return {};
}

}  // namespace

void follow_stacks(const TreeLeaves& of_body, TreeLeaves& ys) {
  for (TreeLeaf& leaf : ys)
    if (leaf.kind == TreeLeaf::Kind::dim)
      leaf.dim = stacked_dim(leaf.dim, of_body, ys).value_or(leaf.dim);
}

void refuse_dim_of_body(const ScanPlan& plan, const TensorType& y, const Dim& dim) {
  throw ShapeError(str(plan.what, ": y is ", y, ", whose dim ", dim,
                       " has another size in every iteration; give it lengths, as in Dim(\"",
                       dim.name(), "\", count), or a Dim from outside of the body"));
}

TreeLeaves checked_ys(const ScanSpec& spec, const ScanPlan& plan, TreeLeaves ys,
                      const TreeLeaves* before) {
  const auto paths = [&] { return spec.y_paths(); };
  Objections objections;
  if (before && !detail::same_structure(*before, ys)) {
    for (const auto& [path, first, now] :
         detail::pair_leaves(*before, spec.first_y_paths(), ys, paths()))
      if (!first || !now || first->kind != now->kind || first->fixed != now->fixed)
        objections.add(path, now ? detail::print(*now) : "nothing",
                       first ? detail::print(*first) : "nothing", Difference::structure);
    objections.throw_if_any(plan.what, false);
  }
  if (spec.ys_types && !before) check_structure(spec, plan, leaves_of(ys, paths()));
  std::size_t place = 0;
  for (std::size_t i = 0; i < ys.size(); ++i) {
    if (!is_leaf(ys[i])) continue;
    const std::size_t leaf = place++;
    if (ys[i].kind != TreeLeaf::Kind::tensor) continue;
    Tensor& y = ys[i].tensor;
    std::optional<TensorType> wanted;
    if (before)
      wanted = (*before)[i].tensor.type();
    else if (spec.ys_types)
      wanted = (*spec.ys_types)[leaf];
    if (!y.is_defined()) {
      if (!wanted)
        throw StructureError(str(plan.what, ": ", paths()[i],
                                 " of the body is an empty Tensor; None{} stands for no y"));
      objections.add(paths()[i], detail::print(ys[i]), print(wanted), Difference::structure);
      continue;
    }
    if (y.type().is_array()) refuse_array(plan, paths()[i], y.type());
    if (!wanted || y.type() == *wanted) continue;
    if (before && y.dtype() == wanted->dtype()) y = with_dims_of_first(plan, y, *wanted);
    const Difference how = difference(y.type(), *wanted);
    if (how == Difference::none) {
      if (y.type().is_named()) y = transpose_to(y, wanted->dims());
    } else if (how == Difference::dtypes || !(spec.return_tensor_arrays && before)) {
      objections.add(paths()[i], y.type(), *wanted, how);
    }
  }
  objections.throw_if_any(plan.what, !before);
  if (!before) check_names(spec, plan, ys);
  return ys;
}

}  // namespace reel
