// core/leaf.h — Leaf, one end of a tree: what trees are flattened to, and traced functions work on.
#pragma once

#include <vector>

#include "reel/core/fixed_value.h"
#include "reel/core/tensor.h"

namespace reel {

/// A Tensor (a TensorArray is one, of list type), a Dim, nothing, or a value that is the same for
/// every run of a trace.
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
