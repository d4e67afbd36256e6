#include "reel/trace/executors/plan/memory.h"

#include <algorithm>
#include <map>
#include <new>
#include <utility>

namespace reel {
namespace {

/// Free pieces of memory by their offset; neighbours are joined.
class FreeList {
 public:
  std::int64_t take(std::int64_t bytes) {
    auto best = pieces_.end();
    for (auto it = pieces_.begin(); it != pieces_.end(); ++it)
      if (it->second >= bytes && (best == pieces_.end() || it->second < best->second)) best = it;
    if (best == pieces_.end()) {
      std::int64_t offset = end_;
      if (!pieces_.empty() && std::prev(pieces_.end())->first + std::prev(pieces_.end())->second ==
                                  end_) {  // the last piece can be made longer
        offset = std::prev(pieces_.end())->first;
        pieces_.erase(std::prev(pieces_.end()));
      }
      end_ = offset + bytes;
      return offset;
    }
    const auto [offset, size] = *best;
    pieces_.erase(best);
    if (size > bytes) pieces_.emplace(offset + bytes, size - bytes);
    return offset;
  }

  void give_back(std::int64_t offset, std::int64_t bytes) {
    auto it = pieces_.emplace(offset, bytes).first;
    const auto next = std::next(it);
    if (next != pieces_.end() && it->first + it->second == next->first) {
      it->second += next->second;
      pieces_.erase(next);
    }
    if (it == pieces_.begin()) return;
    const auto before = std::prev(it);
    if (before->first + before->second != it->first) return;
    before->second += it->second;
    pieces_.erase(it);
  }

  std::int64_t end() const { return end_; }

 private:
  std::map<std::int64_t, std::int64_t> pieces_;
  std::int64_t end_ = 0;
};

thread_local PlanMemory given_back;

}  // namespace

PlanMemory take_plan_memory(std::int64_t bytes) {
  bytes = (std::max<std::int64_t>(bytes, 1) + 63) / 64 * 64;
  if (given_back.bytes >= bytes && given_back.bytes <= 2 * bytes)
    return std::exchange(given_back, {});
  if (given_back.bytes < bytes) given_back = {};
  PlanMemory memory{
      {static_cast<char*>(std::aligned_alloc(64, static_cast<std::size_t>(bytes))), {}}, bytes};
  if (!memory.data) throw std::bad_alloc();
  return memory;
}

void give_back(PlanMemory memory) {
  if (memory.bytes > given_back.bytes) given_back = std::move(memory);
}

std::int64_t place_buffers(std::vector<PlannedBuffer>& buffers) {
  FreeList free;
  std::multimap<int, const PlannedBuffer*> in_use;  // by their last instruction
  const auto rounded = [](std::int64_t bytes) {
    return (std::max<std::int64_t>(bytes, 1) + 63) / 64 * 64;
  };
  for (PlannedBuffer& buffer : buffers) {
    while (!in_use.empty() && in_use.begin()->first < buffer.first) {
      const PlannedBuffer& done = *in_use.begin()->second;
      free.give_back(done.offset, rounded(done.bytes));
      in_use.erase(in_use.begin());
    }
    buffer.offset = free.take(rounded(buffer.bytes));
    in_use.emplace(buffer.last, &buffer);
  }
  return free.end();
}

}  // namespace reel
