#include "reel/core/types/dim_symbol.h"

#include <utility>

namespace reel {

Dim dim_symbol(std::string name, Dims length_dims) {
  Ref<DimNode> node(new DimNode);
  node->name = std::move(name);
  node->kind = length_dims.empty() ? DimKind::dynamic : DimKind::ragged;
  node->is_symbol = true;
  node->length_dims = std::move(length_dims);
  return Dim::of_node(std::move(node));
}

}  // namespace reel
