// trace/executors/plan/base/first_below.h — FirstBelow: finds the first number below a limit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

namespace reel {

/// Finds the first of some numbers that is at most a given limit, and removes numbers. Both take
/// time logarithmic in the count.
class FirstBelow {
 public:
  FirstBelow() = default;
  explicit FirstBelow(const std::vector<int>& numbers) : count_(numbers.size()) {
    while (leaves_ < count_) leaves_ *= 2;
    all_.assign(2 * leaves_, kNone);
    std::copy(numbers.begin(), numbers.end(), all_.begin() + static_cast<std::ptrdiff_t>(leaves_));
    for (std::size_t node = leaves_; node-- > 1;)
      all_[node] = std::min(all_[2 * node], all_[2 * node + 1]);
  }

  /// Restores all numbers. Must be called before the first find().
  void begin() { least_ = all_; }
  /// Returns the index of the first number that is at most `limit`; the count if there is none.
  std::size_t find(int limit) const {
    if (least_.empty() || least_[1] > limit) return count_;
    std::size_t node = 1;
    while (node < leaves_) node = 2 * node + (least_[2 * node] > limit);
    return node - leaves_;
  }
  /// Removes a number until the next begin().
  void leave_out(std::size_t place) {
    std::size_t node = leaves_ + place;
    least_[node] = kNone;
    while (node /= 2) least_[node] = std::min(least_[2 * node], least_[2 * node + 1]);
  }
  bool operator==(const FirstBelow&) const = default;

 private:
  static constexpr int kNone = std::numeric_limits<int>::max();

  std::size_t count_ = 0, leaves_ = 1;
  std::vector<int> all_, least_;  ///< nodes of a binary tree: the least number in the subtree
};

}  // namespace reel
