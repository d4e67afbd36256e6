// trace/executors/dataflow/busy_time.h — BusyTime, the total length of overlapping time spans.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <utility>

namespace reel {

/// Measures the time in which any of the added spans was open. Spans may overlap and come in any
/// order, but mostly come in the order of their ends: a thread may be interrupted between the end
/// of its work and add(). Not thread-safe.
class BusyTime {
 public:
  void add(std::int64_t begin, std::int64_t end) {
    auto behind = spans_.end();  // spans that begin after this one has ended
    while (behind != spans_.begin() && std::prev(behind)->first > end) --behind;
    auto first = behind;  // from here on spans meet it
    while (first != spans_.begin() && std::prev(first)->second >= begin) {
      --first;
      begin = std::min(begin, first->first);
      end = std::max(end, first->second);
      nanoseconds_ -= first->second - first->first;
    }
    spans_.insert(spans_.erase(first, behind), {begin, end});
    nanoseconds_ += end - begin;
    if (spans_.size() > kMaxSpans) spans_.pop_front();
  }
  std::int64_t nanoseconds() const { return nanoseconds_; }

 private:
  /// Older spans are final: no added span begins before this many gaps.
  static constexpr std::size_t kMaxSpans = 4096;
  std::deque<std::pair<std::int64_t, std::int64_t>> spans_;  ///< disjoint, in order
  std::int64_t nanoseconds_ = 0;
};

}  // namespace reel
