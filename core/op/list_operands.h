// core/op/list_operands.h — lists as operands: bind refuses them unless the op takes them.
#pragma once

#include <algorithm>
#include <cstddef>

#include "reel/core/op/op.h"

namespace reel {

/// Returns true if this operand may be the value of a TensorArray. All from 31 on share one bit.
inline bool takes_list(const Op& op, std::size_t operand) {
  return (op.takes_lists >> std::min<std::size_t>(operand, 31) & 1) != 0;
}

/// Throws StructureError if the operand is the value of a TensorArray and the op takes a tensor
/// there.
void check_list_operand(const Op& op, std::size_t operand, const TensorType& type);

}  // namespace reel
