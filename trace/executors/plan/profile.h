// trace/executors/plan/profile.h — Profile, what the instructions of a plan took, and when.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <new>
#include <vector>

namespace reel {

/// Calls and time of a plan's instructions, by record of its graph; and the same of the plans
/// inside it, as a tree. It outlives them: a plan that is made again for other sizes goes on
/// counting where the one before it stopped.
///
/// One plan counts at a time: blocks of a loop, which run on several threads, have a profile each.
class Profile {
 public:
  struct Count {
    std::int64_t calls = 0, nanoseconds = 0;
  };
  std::int64_t runs = 0;  ///< of the plan
  /// The run that is counted is the one that made the plans of loops.
  bool is_first = true;
  std::vector<Count> records;

  /// An instruction of the last run, or (kWhole) a run of the whole plan, as one of a loop's body.
  struct Event {
    static constexpr std::uint32_t kWhole = ~0u;
    std::uint32_t record, thread;
    std::int64_t begin, end;  ///< nanoseconds_now()
  };
  /// Of a plan that runs often, the first ones; how many there were beyond them is counted.
  static constexpr std::size_t kMostEvents = std::size_t{1} << 14;
  std::vector<Event> events;
  std::int64_t left_out = 0;

  /// Never fails: an event for which there is no memory is left out.
  void note(const Event& event) {
    try {
      if (events.size() < kMostEvents) return events.push_back(event);
    } catch (const std::bad_alloc&) {
    }
    ++left_out;
  }
  /// A run of the outermost plan begins.
  void forget_events() {
    events.clear();
    left_out = 0;
    for (auto& [i, child] : children_) child->forget_events();
  }

  /// Child `i`, made when it is first asked for: of a plan one for each record that is a loop or a
  /// cond, of those one for each plan (LoopPlan and CondPlan say which).
  Profile& child(std::size_t i) {
    std::unique_ptr<Profile>& found = children_[i];
    if (!found) found = std::make_unique<Profile>();
    return *found;
  }
  const Profile* find_child(std::size_t i) const {
    const auto found = children_.find(i);
    return found == children_.end() ? nullptr : found->second.get();
  }
  /// All numbers are zero again.
  void clear() {
    runs = 0;
    records.assign(records.size(), {});
    for (auto& [i, child] : children_) child->clear();
  }

 private:
  std::map<std::size_t, std::unique_ptr<Profile>> children_;
};

inline std::int64_t nanoseconds_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Of this thread: they are numbered as they first ask.
inline std::uint32_t thread_number() {
  static std::atomic<std::uint32_t> next{0};
  thread_local const std::uint32_t mine = next++;
  return mine;
}

}  // namespace reel
