// trace/passes/support/grows_large.h — tells which loop-invariant values are too large to hoist.
#pragma once

#include <algorithm>
#include <ranges>

#include "reel/core/types/tensor_type.h"

namespace reel {

/// Returns true if a value is larger than 1 MiB and larger than each of its operands. Hoisted, it
/// would stay in memory as long as the loop runs; inside, it may be made tile by tile. Returns
/// false for sizes that only a run knows.
///
/// made, of: types of the value and of its operands.
template <class Types>
bool grows_large(const TensorType& made, const Types& of) {
  constexpr std::int64_t kLargeBytes = 1 << 20;
  if (!made.is_known() || made.bytes() <= kLargeBytes) return false;
  return std::ranges::none_of(of, [&](const TensorType& type) {
    return type.is_known() && !type.is_list() && type.bytes() >= made.bytes();
  });
}

}  // namespace reel
