// trace/passes/grows_large.h — the guard of what leaves a loop because no step changes it.
#pragma once

#include <algorithm>
#include <ranges>

#include "reel/core/tensor_type.h"

namespace reel {

/// Before a loop it would lie there as long as the loop runs, in more than a MiB, and larger than
/// anything that it is made of; inside it may be made tile by tile. Sizes that only a run knows
/// count as small.
template <class Types>
bool grows_large(const TensorType& made, const Types& of) {
  constexpr std::int64_t kMuch = 1 << 20;
  if (!made.is_known() || made.bytes() <= kMuch) return false;
  return std::ranges::none_of(of, [&](const TensorType& type) {
    return type.is_known() && !type.is_list() && type.bytes() >= made.bytes();
  });
}

}  // namespace reel
