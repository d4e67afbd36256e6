// trace/executors/plan/memory.h — where the values of a plan lie in one piece of memory.
#pragma once

#include <cstdint>
#include <vector>

namespace reel {

/// A value that needs `bytes` from the instruction that makes it to the last one that reads it.
struct PlannedBuffer {
  std::int64_t bytes = 0;
  int first = 0, last = 0;
  std::int64_t offset = 0;  ///< given by place_buffers, a multiple of 64
};

/// Gives every buffer its place, so that two that are needed at a time never overlap -> the bytes
/// needed in all. Buffers come in the order of `first`; each takes the smallest gap that holds it.
std::int64_t place_buffers(std::vector<PlannedBuffer>& buffers);

}  // namespace reel
