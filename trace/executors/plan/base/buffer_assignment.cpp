#include "reel/trace/executors/plan/base/buffer_assignment.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace reel {
namespace {

/// Free ranges by offset; adjacent ranges are merged.
class FreeList {
 public:
  std::int64_t take(std::int64_t bytes) {
    const auto best = by_size_.lower_bound({bytes, 0});
    if (best == by_size_.end()) {
      std::int64_t offset = end_;
      if (!ranges_.empty() && std::prev(ranges_.end())->first + std::prev(ranges_.end())->second ==
                                  end_) {  // the last range can be extended
        offset = std::prev(ranges_.end())->first;
        remove(std::prev(ranges_.end()));
      }
      end_ = offset + bytes;
      return offset;
    }
    const auto [size, offset] = *best;
    remove(ranges_.find(offset));
    if (size > bytes) add(offset + bytes, size - bytes);
    return offset;
  }

  void give_back(std::int64_t offset, std::int64_t bytes) {
    const auto next = ranges_.lower_bound(offset);
    if (next != ranges_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == offset) {
        offset = before->first;
        bytes += before->second;
        remove(before);
      }
    }
    if (next != ranges_.end() && offset + bytes == next->first) {
      bytes += next->second;
      remove(next);
    }
    add(offset, bytes);
  }

  std::int64_t end() const { return end_; }

 private:
  using Ranges = std::map<std::int64_t, std::int64_t>;
  void add(std::int64_t offset, std::int64_t bytes) {
    ranges_.emplace(offset, bytes);
    by_size_.emplace(bytes, offset);
  }
  void remove(Ranges::iterator range) {
    by_size_.erase({range->second, range->first});
    ranges_.erase(range);
  }

  Ranges ranges_;                                            ///< bytes by offset
  std::set<std::pair<std::int64_t, std::int64_t>> by_size_;  ///< the same, by bytes first
  std::int64_t end_ = 0;
};

}  // namespace

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
