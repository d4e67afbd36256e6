#include "reel/frontend/loop_state.h"

#include <algorithm>

#include "reel/core/errors.h"
#include "reel/core/mode.h"
#include "reel/core/ops.h"
#include "reel/core/str.h"
#include "reel/frontend/leaves.h"

namespace reel {
namespace {

using detail::print;

bool is_permutation(const Dims& a, const Dims& b) {
  if (a.size() != b.size()) return false;
  return std::all_of(a.begin(), a.end(),
                     [&](const Dim& dim) { return dim.is_named() && contains(b, dim); });
}

bool says_something(const Dim& dim) { return dim.is_named() || dim.has_size(); }

}  // namespace

StateRule::StateRule(std::string what, const TreeLeaves& initial, PathsFn paths,
                     std::vector<std::optional<PartialShape>> invariants)
    : what_(std::move(what)),
      initial_(initial),
      paths_(std::move(paths)),
      invariants_(initial.size()) {
  find_slots();
  std::size_t tensors = 0;
  for (std::size_t i = 0; i < initial.size(); ++i) {
    if (initial[i].kind != TreeLeaf::Kind::tensor) continue;
    if (!initial[i].tensor.is_defined())
      throw StructureError(
          str(what_, ": ", paths_()[i], " of the initial state is an empty Tensor"));
    if (tensors < invariants.size()) invariants_[i] = invariants[tensors];
    ++tensors;
  }
  if (!invariants.empty() && invariants.size() != tensors)
    throw ArgumentError(str(what_, ": shape_invariants has ", invariants.size(),
                            " entries, but the state has ", tensors,
                            " tensors; give one entry per tensor, std::nullopt for the default"));
  for (std::size_t i = 0; i < initial.size(); ++i)
    if (invariants_[i] && !allows(i, initial[i].tensor.type(), {}))
      throw ShapeError(str(what_, ": the shape invariant ", *invariants_[i], " of ", paths_()[i],
                           " is not compatible with its initial value, ",
                           initial[i].tensor.type()));
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

bool StateRule::allows(std::size_t leaf, const TensorType& type, const DimChanges& changes) const {
  const auto& invariant = invariants_[leaf];
  if (!invariant && changes.empty() && type == initial_[leaf].tensor.type()) return true;
  const Dims wanted = changes(invariant && invariant->has_rank() ? invariant->dims()
                                                                 : initial_[leaf].tensor.dims());
  if (invariant && !invariant->has_rank())
    return !is_tracing() || type.rank() == initial_[leaf].tensor.rank();
  if (wanted.size() != type.dims().size()) return false;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (says_something(wanted[i]) && !(wanted[i] == type.dims()[i])) return false;
  return true;
}

TensorType StateRule::formal_type(std::size_t leaf) const {
  const TensorType& type = initial_[leaf].tensor.type();
  const auto& invariant = invariants_[leaf];
  Dims dims;
  for (int i = 0; i < type.rank(); ++i) {
    const bool is_unknown =
        !says_something(type.dims()[i]) ||
        (invariant && (!invariant->has_rank() || !says_something(invariant->dims()[i])));
    dims.push_back(is_unknown ? Dim::unknown() : type.dims()[i]);
  }
  return type.with(dims);
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
                ? str(" ", paths_()[slot], " came back as it was: return its new Dim there where ",
                      "tensors that have ", before, " change it.")
                : str(" ", paths_()[slot], " came back as ", after, ", so tensors that had ",
                      before, " have that instead.");
  }
  const auto is_list = [&](std::size_t i) {
    return initial_[i].kind == TreeLeaf::Kind::tensor && initial_[i].tensor.type().is_list();
  };
  if (!text.empty() && std::any_of(wrong.begin(), wrong.end(), is_list))
    text +=
        " An array keeps elements of one type, so a Dim of theirs cannot change; keep what grows "
        "in a tensor.";
  return text;
}

TreeLeaves StateRule::checked(TreeLeaves returned) const {
  enum { fine, shape, dtype, structure } worst = fine;
  std::string lines;
  bool has_size_change = false;
  std::vector<std::size_t> wrong;
  const bool is_alike = returned.size() == initial_.size();
  DimChanges changes;
  for (const std::size_t i : slots_)
    if (is_alike && returned[i].kind == TreeLeaf::Kind::dim)
      changes.add(initial_[i].dim, returned[i].dim);
  const auto complain = [&](std::size_t i, auto severity, const char* why) {
    if (severity == shape) wrong.push_back(i);
    worst = std::max(worst, severity);
    const std::vector<std::string> paths = paths_();
    lines += str("\n  ", i < paths.size() ? paths[i] : "state", ": ",
                 i < initial_.size() ? print(initial_[i]) : "nothing", " going in, ",
                 i < returned.size() ? print(returned[i]) : "nothing", " coming out (", why, ")");
  };
  for (std::size_t i = 0; i < std::max(initial_.size(), returned.size()); ++i) {
    if (i >= initial_.size() || i >= returned.size() || initial_[i].kind != returned[i].kind) {
      complain(i, structure, "structures differ");
      break;
    }
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
    if (from.is_list() != to.is_list()) {
      complain(i, structure, "structures differ");
    } else if (from.dtype() != to.dtype()) {
      complain(i, dtype, "dtypes differ");
    } else if (!allows(i, to, changes)) {
      const Dims wanted = changes(from.dims());
      if (!from.is_list() && is_permutation(wanted, to.dims())) {
        after.tensor = transpose(after.tensor, wanted);
        continue;
      }
      has_size_change = has_size_change || !from.is_named();
      complain(i, shape,
               invariants_[i] ? "its shape invariant does not allow that" : "dims differ");
    }
  }
  if (worst == fine) return returned;
  const std::string text =
      str(what_, ": the state returned by the body differs from the state it was given", lines,
          "\nReturn every leaf with the type it had on entry.",
          has_size_change ? " To let a size change, give a less specific one in shape_invariants, "
                            "as in PartialShape{unknown, 2}."
                          : "",
          worst == shape && is_alike ? advice(returned, wrong) : "");
  if (worst == structure) throw StructureError(text);
  if (worst == dtype) throw DTypeError(text);
  throw ShapeError(text);
}

Tensor checked_condition(const std::string& what, const Tensor& condition) {
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
