// core/dim_node.h — DimNode, what a Dim with an identity points to.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "reel/core/ref.h"

namespace reel {

class Dim;
struct DimExpression;
struct TensorBlock;

enum class DimKind : std::uint8_t { plain, fixed, dynamic, ragged, undefined };

/// Complete wherever Dim is, because who copies a Dim counts its nodes; hence a block and not a
/// Tensor, which needs Dim itself.
struct DimNode : RefCounted {
  std::string name;
  DimKind kind = DimKind::plain;
  bool is_symbol = false;    ///< belongs to a trace
  std::int64_t size = -1;    ///< extent; -1 where only a run knows it
  Ref<TensorBlock> lengths;  ///< i32; null for static dims and symbols
  std::vector<Dim> length_dims;
  bool is_full = true;  ///< every entry is as long as the extent: there is no padding
  std::unique_ptr<const DimExpression> expression;  ///< of a dim made by arithmetic

  /// Computed dims are found by who does not hold them (dim_arithmetic.cpp): see Ref.
  static constexpr bool kIsFoundAgain = true;

  DimNode();
  ~DimNode();
  static void destroy(const DimNode* node);
};

}  // namespace reel
