#include "reel/frontend/loops/state/loop_state.h"

#include <algorithm>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/functions/unranked.h"
#include "reel/core/ops.h"
#include "reel/core/ops/list/list.h"
#include "reel/core/types/mode.h"
#include "reel/frontend/tree/leaves.h"

namespace reel {
namespace {

using detail::print;

/// Returns the repair if the returned dims have one dim, of the same size, in place of another.
std::string rename_hint(const Dims& given, const Dims& returned) {
  Dims missing, added;
  for (const Dim& dim : given)
    if (!contains(returned, dim)) missing.push_back(dim);
  for (const Dim& dim : returned)
    if (!contains(given, dim)) added.push_back(dim);
  if (missing.size() != 1 || added.size() != 1) return "";
  const Dim &from = added[0], &to = missing[0];
  const bool fit = from.is_named() && to.is_named() && !from.is_ragged() && !to.is_ragged() &&
                   from.has_size() && to.has_size() && from.size() == to.size();
  if (!fit || from.name() == to.name()) return "";
  return str("; rename it: rename(x, ", from.name(), ", ", to.name(), ")");
}

bool is_permutation(const Dims& a, const Dims& b) {
  if (a.size() != b.size()) return false;
  return std::all_of(a.begin(), a.end(),
                     [&](const Dim& dim) { return dim.is_named() && contains(b, dim); });
}

bool says_something(const Dim& dim) { return dim.is_named() || dim.has_size(); }

/// True if both have the same rank and `dims` differ from `than` only by unknown dims.
bool is_more_general(const Dims& dims, const Dims& than) {
  if (dims.size() != than.size()) return false;
  bool says_less = false;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (says_something(dims[i]) && !(dims[i] == than[i])) return false;
    says_less = says_less || (!says_something(dims[i]) && says_something(than[i]));
  }
  return says_less;
}

}  // namespace

StateRule::StateRule(std::string what, const TreeLeaves& initial, PathsFn paths,
                     PathsFn returned_paths, const Invariants& invariants, Asks asks)
    : what_(std::move(what)),
      initial_(initial),
      paths_(std::move(paths)),
      returned_paths_(std::move(returned_paths)),
      takes_invariants_(asks == Asks::shape_invariants),
      invariants_(initial.size()) {
  find_slots();
  std::size_t tensors = 0;
  const std::string empty = detail::paths_of_empty(initial, paths_);
  for (std::size_t i = 0; i < initial.size(); ++i) {
    if (initial[i].kind != TreeLeaf::Kind::tensor) continue;
    if (tensors < invariants.size()) invariants_[i] = invariants[tensors];
    ++tensors;
  }
  if (!empty.empty())
    throw StructureError(str(what_, ": the initial state has empty Tensors: ", empty,
                             "; give them values, or let them be std::optional<Tensor>",
                             empty.find("dense_shape") != std::string::npos
                                 ? ". A dense_shape is a vector, the sizes of the whole "
                                   "tensor: tensor({rows, columns})"
                                 : ""));
  if (!invariants.empty() && invariants.size() != tensors)
    throw ArgumentError(str(what_, ": shape_invariants has ", invariants.size(),
                            " entries, but the state has ", tensors,
                            " tensors; give one entry per tensor, std::nullopt for the default"));
  std::string lines;
  bool knows_less = false;
  for (const TreeLeaf& leaf : initial)
    if (!takes_invariants_ && leaf.kind == TreeLeaf::Kind::tensor) check_ranked(leaf.tensor);
  for (std::size_t i = 0; i < initial.size(); ++i) {
    if (!invariants_[i]) continue;
    const TensorType& type = initial[i].tensor.type();
    if (!allows(i, type, {})) {
      lines += str("\n  ", paths_()[i], ": ", type, ", shape invariant ", *invariants_[i]);
      knows_less =
          knows_less || (is_tracing() && is_more_general(type.dims(), invariants_[i]->dims()));
    } else if (type.is_array()) {
      initial_[i].tensor = relax_elements(initial_[i].tensor, invariant(i));
    }
  }
  if (!lines.empty())
    throw ShapeError(str(
        what_, ": initial values do not match their shape invariant", lines,
        "\nGive an invariant that allows the initial value: unknown for a ",
        "size that changes, std::nullopt for the value's own shape.",
        knows_less ? " A size that a trace does not know can be given with ensure_shape." : ""));
}

void StateRule::find_slots() {
  for (std::size_t i = 0; i < initial_.size(); ++i) {
    if (initial_[i].kind != TreeLeaf::Kind::dim) continue;
    const Dim& dim = initial_[i].dim;
    if (!dim.is_named() || dim.is_undefined()) continue;
    for (const std::size_t other : slots_)
      if (initial_[other].dim == dim)
        throw StructureError(str(what_, ": Dim ", dim, " is in the state twice, as ",
                                 paths_()[other], " and ", paths_()[i],
                                 "; a Dim in the state may change, so let one leaf hold it"));
    slots_.push_back(i);
  }
}

DimChanges StateRule::changes_to(const TreeLeaves& state) const {
  DimChanges changes;
  for (const std::size_t i : slots_) changes.add(initial_[i].dim, state[i].dim);
  return changes;
}

bool StateRule::may_become(const Dim& before, const Dim& after, const DimChanges& changes) const {
  return before.is_named() && !before.is_undefined() && after.is_named() && !after.is_undefined() &&
         changes(before.length_dims()) == after.length_dims();
}

PartialShape StateRule::invariant(std::size_t leaf) const {
  if (invariants_[leaf]) return *invariants_[leaf];
  if (is_unranked(initial_[leaf].tensor)) return PartialShape::unknown_rank();
  return initial_[leaf].tensor.dims();
}

bool StateRule::allows(std::size_t leaf, const TensorType& type, const DimChanges& changes) const {
  const TensorType& before = initial_[leaf].tensor.type();
  if (!invariants_[leaf] && changes.empty() && type == before) return true;
  const PartialShape shape = invariant(leaf);
  if (!shape.has_rank()) return true;
  return !type.is_unranked() && PartialShape(changes(shape.dims())).allows(type.dims());
}

TensorType StateRule::formal_type(std::size_t leaf) const {
  const TensorType& type = initial_[leaf].tensor.type();
  const PartialShape shape = invariant(leaf);
  Dims dims;
  for (int i = 0; i < type.rank(); ++i) {
    const Dim& dim = type.dims()[i];
    const bool stays =
        shape.has_rank() ? says_something(dim) && says_something(shape.dims()[i]) : dim.is_named();
    if (!stays && dim.is_named())
      throw ShapeError(str(what_, ": the shape invariant ", shape, " of ", paths_()[leaf],
                           " lets dim ", dim, " change; in a trace the state ",
                           "has to hold this Dim beside the tensor"));
    dims.push_back(stays ? dim : Dim::unknown());
  }
  return type.with(dims);
}

TreeLeaves StateRule::unchanged() const {
  TreeLeaves result = initial_;
  for (std::size_t i = 0; i < result.size(); ++i)
    if (invariants_[i] && !is_unranked(result[i].tensor))
      result[i].tensor = relax_shape(result[i].tensor, *invariants_[i]);
  return result;
}

std::string StateRule::why_not(std::size_t leaf, const TensorType& type,
                               const DimChanges& changes) const {
  const auto& given = invariants_[leaf];
  if (type.is_unranked()) return "its rank is known only when the graph runs";
  if (is_more_general(type.dims(), invariant(leaf).dims()))
    return given ? str("more general than its shape invariant ", *given) : "more general";
  if (given) return str("its shape invariant ", *given, " does not allow that");
  const TensorType& before = initial_[leaf].tensor.type();
  if (changes.affects(before) && !before.is_list())
    return str("dims differ: expected ", changes(before));
  return detail::dims_differ(before, type) + rename_hint(before.dims(), type.dims());
}

std::string StateRule::advice(const TreeLeaves& returned,
                              const std::vector<std::size_t>& wrong) const {
  std::string text;
  for (const std::size_t i : wrong) {
    if (initial_[i].kind != TreeLeaf::Kind::dim) continue;
    const Dim& dim = initial_[i].dim;
    text += dim.is_named() && !dim.is_undefined()
                ? str(" ", paths_()[i],
                      " may change, but its lengths run over the same dims in every iteration; "
                      "start from Dim(\"",
                      dim.name(), "\", lengths) with lengths over them.")
                : str(" ", paths_()[i],
                      " may change only if it starts as a Dim with a name and a size.");
  }
  for (const std::size_t slot : slots_) {
    const Dim &before = initial_[slot].dim, &after = returned[slot].dim;
    DimChanges change;
    change.add(before, Dim("any", 0));
    const bool concerns = std::any_of(wrong.begin(), wrong.end(), [&](std::size_t i) {
      return initial_[i].kind == TreeLeaf::Kind::tensor &&
             change.affects(initial_[i].tensor.type());
    });
    if (!concerns) continue;
    text += before == after
                ? str(" ", paths_()[slot], " was returned unchanged: return its new Dim there if ",
                      "tensors that have ", before, " change it.")
                : str(" ", paths_()[slot], " was returned as ", after, ", so tensors that had ",
                      before, " have the returned Dim instead.");
  }
  const auto is_list = [&](std::size_t i) {
    return initial_[i].kind == TreeLeaf::Kind::tensor && initial_[i].tensor.type().is_array();
  };
  if (!text.empty() && std::any_of(wrong.begin(), wrong.end(), is_list))
    text +=
        " An array keeps elements of one type, so a Dim of theirs cannot change; keep values that "
        "grow in a tensor.";
  return text;
}

void StateRule::refuse_structure(const TreeLeaves& returned) const {
  const auto pairs = detail::pair_leaves(initial_, paths_(), returned, returned_paths_());
  const auto place = [&](const TreeLeaf* leaf) {
    return static_cast<std::size_t>(leaf - initial_.data());
  };
  DimChanges changes;
  for (const auto& [path, before, after] : pairs)
    if (before && after && std::count(slots_.begin(), slots_.end(), place(before)))
      changes.add(before->dim, after->dim);
  std::string lines;
  for (const auto& [path, before, after] : pairs) {
    std::string why;
    if (before && after) {
      if (before->kind == TreeLeaf::Kind::tensor && after->tensor.is_defined()) {
        const TensorType &from = before->tensor.type(), &to = after->tensor.type();
        if (from.dtype() != to.dtype())
          why = " (dtypes differ)";
        else if (!allows(place(before), to, changes) &&
                 !is_permutation(changes(from.dims()), to.dims()))
          why = str(" (", why_not(place(before), to, changes), ')');
        else
          continue;
      } else if (before->kind == TreeLeaf::Kind::dim) {
        if (before->dim == after->dim || may_become(before->dim, after->dim, changes)) continue;
        why = " (dims differ)";
      } else if (print(*before) == print(*after)) {
        continue;
      }
    }
    lines += str("\n  ", path, ": ", before ? print(*before) : "nothing", " going in, ",
                 after ? print(*after) : "nothing", " coming out", why);
  }
  throw StructureError(
      str(what_, ": the state returned by the body differs from the state it was given", lines,
          "\nReturn every leaf with the type it had on entry. A container keeps its size and its "
          "keys from iteration to iteration; a list that grows can be a TensorArray."));
}

TreeLeaves StateRule::checked(TreeLeaves returned) const {
  if (!detail::same_structure(initial_, returned)) refuse_structure(returned);
  enum { fine, shape, dtype, structure } worst = fine;
  std::string lines;
  bool has_size_change = false, has_less_known = false, has_unknown_rank = false;
  std::vector<std::size_t> wrong;
  const DimChanges changes = changes_to(returned);
  const auto complain = [&](std::size_t i, auto severity, const std::string& why) {
    if (severity == shape) wrong.push_back(i);
    worst = std::max(worst, severity);
    lines += str("\n  ", paths_()[i], ": ", print(initial_[i]), " going in, ", print(returned[i]),
                 " coming out (", why, ")");
  };
  for (std::size_t i = 0; i < initial_.size(); ++i) {
    const TreeLeaf& before = initial_[i];
    TreeLeaf& after = returned[i];
    if (before.kind == TreeLeaf::Kind::fixed && before.fixed != after.fixed)
      complain(i, structure, "values that are no tensors must not change");
    if (before.kind == TreeLeaf::Kind::dim && !(before.dim == after.dim) &&
        !may_become(before.dim, after.dim, changes))
      complain(i, shape, "dims differ");
    if (before.kind != TreeLeaf::Kind::tensor) continue;
    if (!after.tensor.is_defined()) {
      complain(i, structure, "structures differ");
      continue;
    }
    const TensorType &from = before.tensor.type(), &to = after.tensor.type();
    if (from.is_array() != to.is_array()) {
      complain(i, structure, "structures differ");
    } else if (from.dtype() != to.dtype()) {
      complain(i, dtype, "dtypes differ");
    } else if (!allows(i, to, changes)) {
      const Dims wanted = changes(from.dims());
      if (!from.is_array() && is_permutation(wanted, to.dims())) {
        after.tensor = transpose(after.tensor, wanted);
        continue;
      }
      has_unknown_rank = has_unknown_rank || to.is_unranked();
      has_less_known = has_less_known || is_more_general(to.dims(), invariant(i).dims());
      has_size_change =
          has_size_change || (takes_invariants_ && !from.is_named() && !to.is_named() &&
                              !to.is_unranked() && from.rank() == to.rank());
      complain(i, shape, why_not(i, to, changes));
    } else if (to.is_array()) {
      after.tensor = relax_elements(after.tensor, invariant(i));
    }
  }
  if (worst == fine) return returned;
  const std::string text =
      str(what_, ": the state returned by the body differs from the state it was given", lines,
          "\nReturn every leaf with the type it had on entry.",
          has_size_change ? " To let a size change, give a less specific shape in "
                            "shape_invariants, as in PartialShape{unknown, 2}."
                          : "",
          has_less_known ? " A size that stays the same can be given with ensure_shape." : "",
          has_unknown_rank ? " ensure_shape gives a tensor its shape." : "",
          worst == shape ? advice(returned, wrong) : "");
  if (worst == structure) throw StructureError(text);
  if (worst == dtype) throw DTypeError(text);
  throw ShapeError(text);
}

Tensor checked_condition(const std::string& what, const Tensor& condition) {
  if (!condition.is_defined()) throw StructureError(str(what, ": cond returned an empty Tensor"));
  if (condition.dtype() != boolean)
    throw DTypeError(str(what, ": cond must return a boolean scalar, got ", condition.type(),
                         "; compare, as in x < 10"));
  if (condition.rank() == 0) return condition;
  const auto& sizes = condition.type().sizes();
  if (!condition.type().is_named() &&
      std::all_of(sizes.begin(), sizes.end(), [](std::int64_t n) { return n == 1; }))
    return reshape(condition, std::vector<std::int64_t>{});
  throw ShapeError(str(what, ": cond must return a boolean scalar, got ", condition.type(),
                       "; reduce it with any or all, or use scan, whose entries end one by one"));
}

}  // namespace reel
