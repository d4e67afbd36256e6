#include "reel/trace/executors/plan/base/buffer_assignment.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <new>
#include <set>
#include <utility>
#include <vector>

#include "reel/core/base/thread_store.h"
#include "reel/core/runtime/huge_pages.h"
#include "reel/core/runtime/memory.h"

namespace reel {
namespace {

/// Free ranges by offset; adjacent ranges are merged.
class FreeList {
 public:
  std::int64_t take(std::int64_t bytes) {
    const auto best = by_size_.lower_bound({bytes, 0});
    if (best == by_size_.end()) {
      std::int64_t offset = end_;
      if (!pieces_.empty() && std::prev(pieces_.end())->first + std::prev(pieces_.end())->second ==
                                  end_) {  // the last range can be extended
        offset = std::prev(pieces_.end())->first;
        remove(std::prev(pieces_.end()));
      }
      end_ = offset + bytes;
      return offset;
    }
    const auto [size, offset] = *best;
    remove(pieces_.find(offset));
    if (size > bytes) add(offset + bytes, size - bytes);
    return offset;
  }

  void give_back(std::int64_t offset, std::int64_t bytes) {
    const auto next = pieces_.lower_bound(offset);
    if (next != pieces_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == offset) {
        offset = before->first;
        bytes += before->second;
        remove(before);
      }
    }
    if (next != pieces_.end() && offset + bytes == next->first) {
      bytes += next->second;
      remove(next);
    }
    add(offset, bytes);
  }

  std::int64_t end() const { return end_; }

 private:
  using Pieces = std::map<std::int64_t, std::int64_t>;
  void add(std::int64_t offset, std::int64_t bytes) {
    pieces_.emplace(offset, bytes);
    by_size_.emplace(bytes, offset);
  }
  void remove(Pieces::iterator piece) {
    by_size_.erase({piece->second, piece->first});
    pieces_.erase(piece);
  }

  Pieces pieces_;                                            ///< bytes by offset
  std::set<std::pair<std::int64_t, std::int64_t>> by_size_;  ///< the same, by bytes first
  std::int64_t end_ = 0;
};

/// Memory that plans gave back on a thread, most recent first. Giving back never fails, as the
/// array is preallocated.
class GivenBack {
 public:
  /// Returns an allocation that fits; one without data if there is none.
  PlanMemory take(std::int64_t bytes) {
    const auto fits = [&](const PlanMemory& m) {
      return m.data && m.bytes() >= bytes && m.bytes() <= 2 * bytes;
    };
    const auto found = std::find_if(pieces_.begin(), end(), fits);
    if (found == end()) return {};
    PlanMemory memory = std::move(*found);
    std::move(found + 1, end(), found);
    --count_;
    return memory;
  }
  /// Frees the oldest allocations while they and `bytes` more exceed kHeld.
  void make_room(std::int64_t bytes) {
    constexpr std::int64_t kHeld = std::int64_t{1} << 30;
    std::int64_t held = bytes;
    for (auto piece = pieces_.begin(); piece != end(); ++piece) held += piece->bytes();
    while (held > kHeld && count_) {
      held -= pieces_[count_ - 1].bytes();
      drop_oldest();
    }
  }
  void clear() {
    while (count_) drop_oldest();
  }
  void put(PlanMemory memory) {
    make_room(count_ ? memory.bytes() : 0);
    if (count_ == pieces_.size()) drop_oldest();
    std::move_backward(pieces_.begin(), end(), end() + 1);
    pieces_[0] = std::move(memory);
    ++count_;
  }

 private:
  using Pieces = std::array<PlanMemory, 256>;
  Pieces::iterator end() { return pieces_.begin() + static_cast<std::ptrdiff_t>(count_); }
  void drop_oldest() { pieces_[--count_] = {}; }

  Pieces pieces_;
  std::size_t count_ = 0;
};
GivenBack* given_back() { return ThreadStore<GivenBack, PlanMemory>::get(); }

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
  if (GivenBack* const before = given_back()) {
    if (PlanMemory memory = before->take(bytes); memory.data) return memory;
    before->make_room(bytes);
  }
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
  GivenBack* const others = given_back();
  if (memory.data && others) others->put(std::move(memory));
}

void free_held_plan_memory() {
  if (GivenBack* const held = given_back()) held->clear();
}

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
