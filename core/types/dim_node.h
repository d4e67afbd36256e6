// core/types/dim_node.h — DimNode, the object behind a Dim that has an identity.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "reel/core/base/ref.h"
#include "reel/core/base/visibility.h"

REEL_API_BEGIN
namespace reel {

class Dim;
struct DimExpression;
struct TensorBlock;

enum class DimKind : std::uint8_t { plain, fixed, dynamic, ragged, undefined };

/// Complete wherever Dim is, because copying a Dim counts references to its node. It holds a
/// TensorBlock, not a Tensor, because Tensor needs Dim to be complete.
struct DimNode : RefCounted {
  /// Dim::serial(). Unlike the address, it is never used again after this node is freed.
  const std::uint64_t serial;
  std::string name;
  DimKind kind = DimKind::plain;
  bool is_symbol = false;    ///< belongs to a trace
  std::int64_t size = -1;    ///< extent; -1 if known only at run time
  Ref<TensorBlock> lengths;  ///< i32; null for static dims and symbols
  std::vector<Dim> length_dims;
  bool is_full = true;  ///< every length equals the extent: there is no padding
  std::unique_ptr<const DimExpression> expression;  ///< for dims made by arithmetic

  /// A table without references finds computed dims (dim_arithmetic.cpp): see RefCounted.
  static constexpr bool kIsFoundAgain = true;

  DimNode();
  ~DimNode();
  static void destroy(const DimNode* node);
};

// Remove a node that is about to be freed from the table of computed dims and from the table of
// slices. Called by DimNode only.
void forget_computed(const DimNode* node);
void forget_slice(const DimNode* node);

}  // namespace reel
REEL_API_END
