// trace/dynamic_sizes.h — DynamicSizes, the sizes of arguments that a trace does not know.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/types/dim.h"

REEL_API_BEGIN
namespace reel {

/// Static sizes of a call's arguments that are not part of its signature, so that one trace serves
/// all of them.
struct DynamicSizes {
  /// An axis of the tensor at this place among the leaves. No effect on a named axis, or if the
  /// tensor has fewer axes.
  struct PlainAxis {
    std::size_t leaf, axis;
    bool operator==(const PlainAxis&) const = default;
  };
  std::vector<PlainAxis> axes;
  std::vector<std::string> dims;  ///< names of static dims

  /// Returns true if `axes` has an axis of the leaf.
  bool has_axis_of(std::size_t leaf) const;
  /// Returns true for a static dim with one of the names, and for a dim that is computed from it.
  bool has(const Dim& dim) const;
};

}  // namespace reel
REEL_API_END
