// trace/executors/dataflow/busy_time.h — BusyTime, how long something ran.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <utility>

namespace reel {

/// The time in which at least one of some spans was, which may lie beside each other. They come in
/// any order; mostly in that of their ends, as a thread may be interrupted between the end of what
/// it did and saying so.
class BusyTime {
 public:
  void add(std::int64_t begin, std::int64_t end) {
    auto behind = spans_.end();  // those that begin after this one has ended
    while (behind != spans_.begin() && std::prev(behind)->first > end) --behind;
    auto first = behind;  // from here on they meet it
    while (first != spans_.begin() && std::prev(first)->second >= begin) {
      --first;
      begin = std::min(begin, first->first);
      end = std::max(end, first->second);
      nanoseconds_ -= first->second - first->first;
    }
    spans_.insert(spans_.erase(first, behind), {begin, end});
    nanoseconds_ += end - begin;
    if (spans_.size() > kMost) spans_.pop_front();
  }
  std::int64_t nanoseconds() const { return nanoseconds_; }

 private:
  /// Nothing that comes now began before so many pauses.
  static constexpr std::size_t kMost = 4096;
  std::deque<std::pair<std::int64_t, std::int64_t>> spans_;  ///< apart from each other, in order
  std::int64_t nanoseconds_ = 0;
};

}  // namespace reel
