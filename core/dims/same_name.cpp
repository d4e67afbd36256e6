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

}  // namespace reel
