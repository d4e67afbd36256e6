// trace/executors/plan/loop/growing_stack.h — GrowingStack: memory for an unknown number of slices.
#pragma once

#include <cstring>
#include <vector>

#include "reel/core/runtime/memory.h"

namespace reel {

/// Slices of equal size at stable addresses: each chunk of memory holds as many as all chunks
/// before it.
class GrowingStack {
 public:
  /// slice_bytes: size of a slice. what: memory class of the chunks.
  GrowingStack(std::int64_t slice_bytes, MemoryClass what) : bytes_(slice_bytes), what_(what) {}

  /// Returns the address of slice `i`. Requires that i is at most the number of slices so far.
  char* at(std::int64_t i) {
    std::size_t chunk = 0;
    std::int64_t first = 0, room = kFirst;
    while (i >= first + room) {
      first += room;
      if (chunk++) room *= 2;
    }
    if (chunk == chunks_.size()) {
      chunks_.push_back(Tensor(allocate_block(TensorType(boolean, {room * bytes_}))));
      count_as(chunks_.back(), what_);
    }
    return chunks_[chunk].data<char>() + (i - first) * bytes_;
  }

  /// Copies the first `count` slices to `to`, without gaps.
  void copy_to(char* to, std::int64_t count) const {
    for (const Tensor& chunk : chunks_) {
      const std::int64_t bytes = std::min(chunk.type().bytes(), count * bytes_);
      if (bytes > 0) std::memcpy(to, chunk.data<char>(), static_cast<std::size_t>(bytes));
      to += bytes;
      count -= bytes_ ? bytes / bytes_ : 0;
    }
  }

 private:
  static constexpr std::int64_t kFirst = 16;
  std::int64_t bytes_;
  MemoryClass what_;
  Tensors chunks_;
};

}  // namespace reel
