// trace/recent_sizes.h — RecentSizes: whether the sizes of a call are likely to occur again.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "reel/core/op/attrs.h"

namespace reel {

/// The sizes of all arguments of a call, one after the other.
using Sizes = std::vector<std::int64_t>;

/// The sizes of recent calls whose sizes differed from the call before.
class RecentSizes {
 public:
  /// Appends the sizes of a call. Returns true if they occurred before, among at most
  /// `max_distinct` different ones: they are likely to occur again.
  bool recur(const Sizes& sizes, std::size_t max_distinct) {
    std::size_t hash = sizes.size();
    for (const std::int64_t size : sizes) hash = attr::mix(hash, static_cast<std::size_t>(size));
    const bool is_known = std::find(hashes_.begin(), hashes_.end(), hash) != hashes_.end();
    if (hashes_.size() == kMax) hashes_.erase(hashes_.begin());
    hashes_.push_back(hash);
    if (!is_known) return false;
    std::vector<std::size_t> distinct = hashes_;
    std::sort(distinct.begin(), distinct.end());
    return std::unique(distinct.begin(), distinct.end()) - distinct.begin() <=
           static_cast<std::ptrdiff_t>(max_distinct);
  }

 private:
  static constexpr std::size_t kMax = 64;
  std::vector<std::size_t> hashes_;  ///< the oldest in front
};

}  // namespace reel
