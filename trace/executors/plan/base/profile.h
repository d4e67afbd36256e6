// trace/executors/plan/base/profile.h — Profile: calls and times of a plan's instructions.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <new>
#include <vector>

namespace reel {

/// Counts calls and time of a plan's instructions, by record of its graph, with a child for each
/// plan inside it. Outlives the plans: a plan that is made again for other sizes continues the
/// counts.
///
/// Not thread-safe: row blocks, which run on several threads, have a profile each.
class Profile {
 public:
  struct Count {
    std::int64_t calls = 0, nanoseconds = 0;
  };
  std::int64_t runs = 0;  ///< of the plan
  /// Time of all calls, of the outermost plan; of all runs, of a loop or a row block.
  std::int64_t nanoseconds = 0;
  /// The part of a loop's nanoseconds in iterations in which entries have finished.
  std::int64_t finished_nanoseconds = 0;
  /// True if the counted run is the one that made the plans of loops.
  bool is_first = true;
  std::vector<Count> records;

  /// One instruction of the last run or, with kWhole, one run of the whole plan, such as a loop's
  /// body.
  struct Event {
    static constexpr std::uint32_t kWhole = ~0u;
    std::uint32_t record, thread;
    std::int64_t begin, end;  ///< from nanoseconds_now()
  };
  /// Limit of recorded events; later ones are only counted, in left_out.
  static constexpr std::size_t kMaxEvents = std::size_t{1} << 14;
  std::vector<Event> events;
  std::int64_t left_out = 0;

  /// Records an event. Never throws: an event for which there is no memory is counted in left_out.
  void note(const Event& event) {
    try {
      if (events.size() < kMaxEvents) return events.push_back(event);
    } catch (const std::bad_alloc&) {
    }
    ++left_out;
  }
  /// Clears the events. Must be called before a run of the outermost plan.
  void forget_events() {
    events.clear();
    left_out = 0;
    for (auto& [i, child] : children_) child->forget_events();
  }

  /// Returns child `i`, created on first use. A plan has a child for each record that is a loop or
  /// a cond. This child has a child for each of its plans, numbered by LoopPlan and CondPlan.
  Profile& child(std::size_t i) {
    std::unique_ptr<Profile>& found = children_[i];
    if (!found) found = std::make_unique<Profile>();
    return *found;
  }
  /// Returns child `i`; null if it does not exist.
  const Profile* find_child(std::size_t i) const {
    const auto found = children_.find(i);
    return found == children_.end() ? nullptr : found->second.get();
  }
  /// Sets all counts to zero.
  void clear() {
    runs = nanoseconds = finished_nanoseconds = 0;
    records.assign(records.size(), {});
    for (auto& [i, child] : children_) child->clear();
  }

 private:
  std::map<std::size_t, std::unique_ptr<Profile>> children_;
};

/// Returns the time of the steady clock.
inline std::int64_t nanoseconds_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Returns the number of this thread; threads are numbered in the order of their first call.
inline std::uint32_t thread_number() {
  static std::atomic<std::uint32_t> next{0};
  thread_local const std::uint32_t mine = next++;
  return mine;
}

}  // namespace reel
