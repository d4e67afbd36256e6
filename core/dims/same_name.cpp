#include "reel/core/dims/same_name.h"

#include "reel/core/base/str.h"
#include "reel/core/types/dim_expression.h"

namespace reel {
namespace {

/// Returns true for time - 2 and time.
bool is_computed_from(const Dim& dim, const Dim& from) {
  const DimExpression* expression = expression_of(dim);
  if (!expression) return false;
  for (const Dim& operand : expression->operands)
    if (operand == from || is_computed_from(operand, from)) return true;
  return false;
}

/// A dim that only the first list has, and a dim that only the second list has.
struct DimPair {
  const Dim *of_a = nullptr, *of_b = nullptr;
};
/// Returns the first pair that is_pair accepts; nulls if there is none.
template <class Is>
DimPair find_pair(const Dims& a, const Dims& b, const Is& is_pair) {
  for (const Dim& x : a) {
    if (!x.is_named() || contains(b, x)) continue;
    for (const Dim& y : b)
      if (y.is_named() && !contains(a, y) && is_pair(x, y)) return {&x, &y};
  }
  return {};
}

/// True if both dims are computed from one dim, such as time - 2 and time - 3.
bool are_computed_from_one(const Dim& a, const Dim& b) {
  const DimExpression* expression = expression_of(a);
  if (!expression || !expression_of(b)) return false;
  for (const Dim& operand : expression->operands)
    if (is_computed_from(b, operand) || are_computed_from_one(operand, b)) return true;
  return false;
}

/// True if one dim is computed from the other, or both from one dim.
bool are_related(const Dim& a, const Dim& b) {
  return is_computed_from(a, b) || is_computed_from(b, a) || are_computed_from_one(a, b);
}

/// Returns the first name that two different dims share; null if there is none. A computed
/// dim has the names of its operands, which tell nothing if the dims have the same operand.
const std::string* shared_name(const Dims& a, const Dims& b) {
  const DimPair found = find_pair(
      a, b, [](const Dim& x, const Dim& y) { return x.name() == y.name() && !are_related(x, y); });
  return found.of_a ? &found.of_a->name() : nullptr;
}

/// Returns the dim to which numbers were added, or from which they were subtracted: time for
/// time - 2 + 1, and the dim itself for other ones.
Dim unshifted(Dim dim) {
  for (const DimExpression* expression = expression_of(dim);
       expression && expression->operation <= DimOperation::difference &&
       expression->operands.size() == 1;
       expression = expression_of(dim))
    dim = Dim(expression->operands[0]);
  return dim;
}

/// Returns how dims of two tensors such as time - 2 and time relate, and the repair; otherwise "".
std::string computed_hint(const Dims& a, const Dims& b) {
  // Padding repairs a few missing elements; nothing brings time / 2 back to time.
  const auto repair = [](const Dim& x, const Dim& y) {
    return unshifted(x) == unshifted(y) ? ": pad or slice one tensor to the dim of the other" : "";
  };
  const auto hint = [&](const Dim& computed, const Dim& from) {
    return str("; ", computed, " is computed from ", from, repair(computed, from));
  };
  if (const DimPair found = find_pair(a, b, is_computed_from); found.of_a)
    return hint(*found.of_a, *found.of_b);
  if (const DimPair found = find_pair(b, a, is_computed_from); found.of_a)
    return hint(*found.of_a, *found.of_b);
  if (const DimPair found = find_pair(a, b, are_computed_from_one); found.of_a)
    return str("; ", *found.of_a, " and ", *found.of_b, " are computed from one Dim",
               repair(*found.of_a, *found.of_b));
  return "";
}

/// Returns the only dim of this name; null if there are several or none.
const Dim* only_dim_called(const Dims& dims, const std::string& name) {
  const Dim* found = nullptr;
  for (const Dim& dim : dims) {
    if (!dim.is_named() || dim.name() != name) continue;
    if (found) return nullptr;
    found = &dim;
  }
  return found;
}

bool has_size_of(const Dim& dim, const Dim& other) {
  return dim.is_named() && dim.has_size() && !dim.is_ragged() && dim.size() == other.size();
}

}  // namespace

std::string not_one_dim(const Dims& a, const Dims& b) {
  const std::string* name = shared_name(a, b);
  return name ? str("the two called ", *name, " are not one Dim") : "";
}

std::string one_dim_hint(const Dims& a, const Dims& b) {
  const std::string* name = shared_name(a, b);
  return name ? str("; ", not_one_dim(a, b), ": use one Dim for both, as x.dim(\"", *name,
                    "\") gives it")
              : computed_hint(a, b);
}

std::string lacking_dim_hint(const Dim& dim, const Dims& dims) {
  if (!dim.is_named()) return "";
  if (shared_name({dim}, dims)) return one_dim_hint({dim}, dims);
  // A conv or a pool made a new dim, of the same name.
  const Dim* other = only_dim_called(dims, dim.name());
  return other && are_related(*other, dim)
             ? str("; pass x.dim(\"", other->name(), "\"), which is ", *other)
             : "";
}

std::string missing_dim_hint(const TensorType& type, const Dim& dim) {
  if (type.rank() && !type.is_named())
    return "; its dims are plain sizes: name them, as in reshape(x, {dim, ...})";
  const std::string hint = lacking_dim_hint(dim, type.dims());
  if (!hint.empty() || !dim.has_size() || dim.is_ragged()) return hint;
  const Dim* same = nullptr;
  for (const Dim& of : type.dims()) {
    if (!has_size_of(of, dim)) continue;
    if (same) return "";
    same = &of;
  }
  return same ? str("; if ", *same, " is meant, rename it: rename(x, ", same->name(), ", ",
                    dim.name(), ")")
              : "";
}

}  // namespace reel
