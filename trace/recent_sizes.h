// trace/recent_sizes.h — RecentSizes: whether the sizes of a call are likely to occur again.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "reel/core/op/attrs.h"

namespace reel {

/// The sizes of all arguments of a call, one after the other.
using Sizes = std::vector<std::int64_t>;

/// The sizes of recent calls, of calls with other sizes than the call before.
class RecentSizes {
 public:
  /// Appends the sizes of a call. Returns true if a plan of their own pays: they occurred before,
  /// among at most kMaxDistinct different ones, or they have occurred kOften times.
  bool recur(const Sizes& sizes) {
    std::size_t hash = sizes.size();
    for (const std::int64_t size : sizes) hash = attr::mix(hash, static_cast<std::size_t>(size));
    if (counts_.size() == kMaxCounts && !counts_.count(hash)) counts_.clear();
    const bool is_often = ++counts_[hash] >= kOften;
    const bool is_known = std::find(hashes_.begin(), hashes_.end(), hash) != hashes_.end();
    if (hashes_.size() == kMax) hashes_.erase(hashes_.begin());
    hashes_.push_back(hash);
    if (!is_known || is_often) return is_often;
    std::vector<std::size_t> distinct = hashes_;
    std::sort(distinct.begin(), distinct.end());
    return std::unique(distinct.begin(), distinct.end()) - distinct.begin() <=
           static_cast<std::ptrdiff_t>(kMaxDistinct);
  }

 private:
  static constexpr std::size_t kMax = 64, kMaxDistinct = 8, kMaxCounts = 4096;
  /// To make a plan takes up to some 20 times as long as to resize one.
  static constexpr int kOften = 16;
  std::vector<std::size_t> hashes_;  ///< the oldest in front
  std::unordered_map<std::size_t, int> counts_;
};

}  // namespace reel
