// trace/executors/counted.h — what a loop keeps, as memory() counts it.
#pragma once

#include <cstdint>

#include "reel/core/memory.h"

namespace reel {

/// count_as for what was made on this thread since a block had the id `begin`: what somebody handed
/// in stays what it was.
inline void count_as_made_since(std::uint64_t begin, const Tensor& tensor, MemoryClass what) {
  const TensorBlock& block = *tensor.block();
  const TensorBlock& owner = block.storage ? *block.storage : block;
  if (owner.id - begin < std::uint64_t{1} << 43) count_as(tensor, what);
}

}  // namespace reel
