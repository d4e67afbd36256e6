// core/dim_node.h — DimNode, what a Dim with an identity points to.
#pragma once

#include <string>

#include "reel/core/dim.h"
#include "reel/core/tensor.h"

namespace reel {

enum class DimKind : std::uint8_t { plain, fixed, dynamic, ragged, undefined };

struct DimNode : RefCounted {
  std::string name;
  DimKind kind = DimKind::plain;
  bool is_symbol = false;  ///< belongs to a trace
  std::int64_t size = -1;  ///< extent; -1 where only a run knows it
  Tensor lengths;          ///< i32; empty for static dims and symbols
  Dims length_dims;
  bool is_full = true;  ///< every entry is as long as the extent: there is no padding

  static void destroy(const DimNode* node) { delete node; }
};

}  // namespace reel
