#include "reel/trace/executors/plan/memory.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <new>
#include <utility>
#include <vector>

#include "reel/core/huge_pages.h"
#include "reel/core/memory.h"

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

/// What plans gave back, the last one in front.
thread_local std::vector<PlanMemory> given_back;

/// Lets go of the oldest pieces while these and `bytes` more are above kHeld.
void make_room(std::int64_t bytes) {
  constexpr std::int64_t kHeld = std::int64_t{1} << 30;
  std::int64_t held = bytes;
  for (const PlanMemory& piece : given_back) held += piece.bytes();
  while (held > kHeld && !given_back.empty()) {
    held -= given_back.back().bytes();
    given_back.pop_back();
  }
}

}  // namespace

void FreePlanMemory::operator()(char* memory) const {
  std::free(memory);
  count_bytes(MemoryClass::buffers, -bytes);
}

void SavedShare::take(std::int64_t bytes) {
  recount_bytes(MemoryClass::buffers, MemoryClass::saved, bytes - bytes_);
  bytes_ = bytes;
}

PlanMemory take_plan_memory(std::int64_t bytes) {
  bytes = (std::max<std::int64_t>(bytes, 1) + 63) / 64 * 64;
  const auto fits = [&](const PlanMemory& m) {
    return m.bytes() >= bytes && m.bytes() <= 2 * bytes;
  };
  const auto found = std::find_if(given_back.begin(), given_back.end(), fits);
  if (found != given_back.end()) {
    PlanMemory memory = std::move(*found);
    given_back.erase(found);
    return memory;
  }
  make_room(bytes);
  const auto size = static_cast<std::size_t>(bytes);
  const std::size_t alignment = alignment_of_block(size);
  PlanMemory memory{{static_cast<char*>(std::aligned_alloc(
                         alignment, (size + alignment - 1) / alignment * alignment)),
                     {bytes}}};
  if (!memory.data) throw_no_memory(bytes);
  ask_for_huge_pages(memory.data.get(), size);
  count_bytes(MemoryClass::buffers, bytes);
  return memory;
}

void give_back(PlanMemory memory) {
  if (!memory.data) return;
  make_room(given_back.empty() ? 0 : memory.bytes());
  given_back.insert(given_back.begin(), std::move(memory));
}

void free_held_plan_memory() { given_back.clear(); }

std::int64_t most_at_a_time(const std::vector<PlannedBuffer>& buffers) {
  std::map<int, std::int64_t> changes;  // by instruction
  for (const PlannedBuffer& buffer : buffers) {
    changes[buffer.first] += buffer.bytes;
    changes[buffer.last + 1] -= buffer.bytes;
  }
  std::int64_t now = 0, most = 0;
  for (const auto& [instruction, change] : changes) most = std::max(most, now += change);
  return most;
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
