// core/types/leaf.h — TreeLeaf, one leaf of a flattened tree, and the unit that traced functions
// work on.
#pragma once

#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/types/fixed_value.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// A leaf: a Tensor (a TensorArray is a Tensor of list type), a Dim, nothing, or a value that is
/// fixed in a trace.
struct TreeLeaf {
  enum class Kind : std::uint8_t { tensor, dim, none, fixed };
  Kind kind = Kind::none;
  Tensor tensor;
  Dim dim{0};
  FixedValue fixed;  ///< part of a trace's signature

  static TreeLeaf of(Tensor tensor) { return {Kind::tensor, std::move(tensor), Dim(0), {}}; }
  static TreeLeaf of(Dim dim) { return {Kind::dim, {}, std::move(dim), {}}; }
  static TreeLeaf of(FixedValue fixed) { return {Kind::fixed, {}, Dim(0), std::move(fixed)}; }
};
using TreeLeaves = std::vector<TreeLeaf>;

}  // namespace reel
REEL_API_END
