// core/base/held.h — held, the part of an object behind a pointer.
#pragma once

#include <string_view>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"

namespace reel {

/// Returns the part of an object of this type. Throws ArgumentError if the object was moved: its
/// pointer is null.
template <class Pointer>
auto& held(const Pointer& part, std::string_view type) {
  if (!part)
    throw ArgumentError(str(type, ": this object was moved; use the one that it was moved to"));
  return *part;
}

}  // namespace reel
