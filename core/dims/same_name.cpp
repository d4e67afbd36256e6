#include "reel/core/dims/same_name.h"

#include "reel/core/base/str.h"

namespace reel {
namespace {

/// Returns the first name that two different dims share; null if there is none.
const std::string* shared_name(const Dims& a, const Dims& b) {
  for (const Dim& x : a) {
    if (!x.is_named() || contains(b, x)) continue;
    for (const Dim& y : b)
      if (y.is_named() && y.name() == x.name() && !contains(a, y)) return &x.name();
  }
  return nullptr;
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
              : "";
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
