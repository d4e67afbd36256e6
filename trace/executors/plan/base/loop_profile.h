// trace/executors/plan/base/loop_profile.h — LoopProfile: the profile of a loop as a tree of plans.
#pragma once

#include <cstddef>

#include "reel/trace/executors/plan/base/profile.h"

namespace reel {

/// Children of a loop's profile: its own plans, then a profile for each row block, which has these
/// plans again.
struct LoopProfile {
  static constexpr std::size_t kBody = 0, kCond = 1, kFinished = 2, kFirstBlock = 3;

  /// Calls fn(block) for the profile of each row block, in their order.
  template <class Fn>
  static void for_each_block(const Profile& loop, Fn&& fn) {
    for (std::size_t b = kFirstBlock; const Profile* const block = loop.find_child(b); ++b)
      fn(*block);
  }
  /// Calls fn(profile) for the loop's profile, then for each row block's profile: each has plans.
  template <class Fn>
  static void for_each_run(const Profile& loop, Fn&& fn) {
    fn(loop);
    for_each_block(loop, fn);
  }
};

}  // namespace reel
