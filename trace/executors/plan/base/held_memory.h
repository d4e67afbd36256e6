// trace/executors/plan/base/held_memory.h — memory of plans, which threads hold between runs.
#pragma once

#include <cstdint>
#include <memory>

namespace reel {

struct FreePlanMemory {
  std::int64_t capacity = 0;  ///< bytes of the allocation
  std::int64_t bytes = 0;     ///< the largest request it has served: its pages behind are untouched
  void operator()(char* memory) const;
};

/// Memory for the values of a plan, 64-byte aligned. It does not come from the tensor pools, since
/// it may be as large as everything else in a run.
///
/// From 128 KiB on, the capacity is a power of two, with room for four times the bytes as far as it
/// is at most 256 MiB. Pages are provided when they are first written, so that the unused part
/// costs address space only, and a plan for longer sequences writes few pages that the plan before
/// has not written. memory() counts bytes(), not the capacity.
struct PlanMemory {
  std::unique_ptr<char, FreePlanMemory> data;
  std::int64_t bytes() const { return data.get_deleter().bytes; }
  std::int64_t capacity() const { return data.get_deleter().capacity; }
};

/// Counts the part of a plan's memory that holds residuals in memory() while the memory is taken.
class ResidualShare {
 public:
  ResidualShare() = default;
  ~ResidualShare() { give_back(); }
  ResidualShare(const ResidualShare&) = delete;
  ResidualShare& operator=(const ResidualShare&) = delete;
  void take(std::int64_t bytes);
  void give_back() { take(0); }

 private:
  std::int64_t bytes_ = 0;
};

/// Returns memory of at least `bytes` bytes: an allocation that this thread gave back and that
/// fits, otherwise new memory. Before it throws MemoryError, it frees the memory that this thread
/// holds.
PlanMemory take_plan_memory(std::int64_t bytes);
/// As above, but tries the memory `before` of a plan that is not run any more first. Frees `before`
/// if it does not fit.
PlanMemory take_plan_memory(std::int64_t bytes, PlanMemory before);
/// Gives memory back for reuse by this thread. Up to 1 GiB is held, so that plans that run
/// alternately find theirs again; the oldest allocations are freed first. A larger allocation is
/// held alone.
void give_back(PlanMemory memory);
/// Frees the memory that this thread holds for reuse.
void free_held_plan_memory();

struct PlanMemoryNeeds;  // of a thread

/// Counts a plan among those for which its thread holds memory: the thread of its last run.
///
/// Movable. Thread-safe in so far as objects of one thread may be destroyed on others.
class PlanMemoryNeed {
 public:
  PlanMemoryNeed() = default;
  ~PlanMemoryNeed();
  PlanMemoryNeed(PlanMemoryNeed&& other) noexcept { swap(other); }
  PlanMemoryNeed& operator=(PlanMemoryNeed&& other) noexcept {
    swap(other);
    return *this;
  }
  /// Sets the bytes that the plan takes for a run on this thread, from now on.
  void set(std::int64_t bytes);
  /// Makes the thread of the last run, if it is another one, free the memory that no plan needs
  /// when it takes memory for the next time.
  void note_end() const;

 private:
  void swap(PlanMemoryNeed& other) noexcept;

  std::shared_ptr<PlanMemoryNeeds> of_thread_;
  std::int64_t bytes_ = 0;
};

/// Frees the memory that this thread holds, except one allocation of the right capacity for each
/// plan that was run on it last, without the pages that this plan does not need.
void free_unneeded_plan_memory() noexcept;

}  // namespace reel
