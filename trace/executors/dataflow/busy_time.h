// trace/executors/dataflow/busy_time.h — BusyTime, how long something ran.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

namespace reel {

/// The time in which at least one of some spans was, which may lie beside each other. They come in
/// the order of their ends, or nearly so.
class BusyTime {
 public:
  void add(std::int64_t begin, std::int64_t end) {
    while (!spans_.empty() && spans_.back().second >= begin) {
      begin = std::min(begin, spans_.back().first);
      end = std::max(end, spans_.back().second);
      nanoseconds_ -= spans_.back().second - spans_.back().first;
      spans_.pop_back();
    }
    spans_.emplace_back(begin, end);
    nanoseconds_ += end - begin;
    if (spans_.size() > kMost) spans_.pop_front();
  }
  std::int64_t nanoseconds() const { return nanoseconds_; }

 private:
  /// Nothing that ends now began before so many pauses.
  static constexpr std::size_t kMost = 4096;
  std::deque<std::pair<std::int64_t, std::int64_t>> spans_;  ///< apart from each other, in order
  std::int64_t nanoseconds_ = 0;
};

}  // namespace reel
