#include "reel/trace/executors/plan/loop/growing_stack.h"

#include <algorithm>
#include <cstring>

#include "reel/trace/executors/plan/loop/clear_bytes.h"

namespace reel {

char* GrowingStack::place(std::int64_t position) {
  std::size_t chunk = 0;
  std::int64_t first = 0, room = kFirst;
  while (position >= first + room) {
    first += room;
    if (chunk++) room *= 2;
  }
  if (chunk == chunks_.size()) {
    chunks_.push_back(Tensor(allocate_block(TensorType(boolean, {room * bytes_}))));
    count_as(chunks_.back(), loop_.attrs.stacks[index_].memory_class());
  }
  return chunks_[chunk].data<char>() + (position - first) * bytes_;
}

/// Copies the first `count` terms to `to`, without gaps.
void GrowingStack::copy_to(char* to, std::int64_t count) const {
  for (const Tensor& chunk : chunks_) {
    const std::int64_t bytes = std::min(chunk.type().bytes(), count * bytes_);
    if (bytes > 0) std::memcpy(to, chunk.data<char>(), static_cast<std::size_t>(bytes));
    to += bytes;
    count -= bytes_ ? bytes / bytes_ : 0;
  }
}

void GrowingStack::finish(Tensor& out, const Dim& made) const {
  const std::int64_t ran = loop_.iterations.count();
  const Dim dim = loop_.attrs.trips.makes_dim ? made : Dim(ran);
  out = Tensor(allocate_block(stacked(term_, dim)));
  count_as(out, loop_.attrs.stacks[index_].memory_class());
  const std::int64_t count = std::min(ran, dim.size());
  copy_to(out.data<char>(), count);
  clear_bytes(out.data<char>(), count * bytes_, dim.size() * bytes_);
}

}  // namespace reel
