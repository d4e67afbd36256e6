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

/// Two dims, each of which one list has and the other lacks.
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

/// Returns the first name that two different dims share; null if there is none. Names of computed
/// dims are those of their operands, and tell nothing beside these.
const std::string* shared_name(const Dims& a, const Dims& b) {
  const DimPair found = find_pair(a, b, [](const Dim& x, const Dim& y) {
    return x.name() == y.name() && !is_computed_from(x, y) && !is_computed_from(y, x);
  });
  return found.of_a ? &found.of_a->name() : nullptr;
}

/// Returns the repair for dims such as time - 2 and time; otherwise "".
std::string computed_hint(const Dims& a, const Dims& b) {
  const auto hint = [](const Dim& computed, const Dim& from) {
    return str("; ", computed, " is computed from ", from,
               ": pad or slice one tensor to the dim of the other");
  };
  if (const DimPair found = find_pair(a, b, is_computed_from); found.of_a)
    return hint(*found.of_a, *found.of_b);
  if (const DimPair found = find_pair(b, a, is_computed_from); found.of_a)
    return hint(*found.of_a, *found.of_b);
  return "";
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

std::string missing_dim_hint(const TensorType& type, const Dim& dim) {
  if (type.rank() && !type.is_named())
    return "; its dims are plain sizes: name them, as in reshape(x, {dim, ...})";
  const std::string hint = one_dim_hint({dim}, type.dims());
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
