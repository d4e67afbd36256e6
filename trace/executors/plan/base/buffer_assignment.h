// trace/executors/plan/base/buffer_assignment.h — buffer assignment: places the values of a plan in
// one allocation.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace reel {

/// A value of `bytes` bytes that is live from instruction `first` to instruction `last`.
struct PlannedBuffer {
  std::int64_t bytes = 0;
  int first = 0, last = 0;
  std::int64_t offset = 0;  ///< set by place_buffers(); a multiple of 64
};

/// Returns the maximum over instructions of the bytes live there, a lower bound for any assignment.
std::int64_t most_at_a_time(const std::vector<PlannedBuffer>& buffers);

/// Sets the offset of every buffer, such that buffers with overlapping live ranges do not overlap.
/// Each buffer takes the smallest gap that holds it.
///
/// Requires buffers in increasing order of `first`. Returns the bytes of the whole allocation.
std::int64_t place_buffers(std::vector<PlannedBuffer>& buffers);

struct FreePlanMemory {
  std::int64_t bytes = 0;
  void operator()(char* memory) const;
};

/// Memory for the values of a plan, 64-byte aligned. It does not come from the tensor pools, since
/// it may be as large as everything else in a run.
struct PlanMemory {
  std::unique_ptr<char, FreePlanMemory> data;
  std::int64_t bytes() const { return data.get_deleter().bytes; }
};

/// Counts the part of a plan's memory that holds residuals in memory() while the memory is taken.
class SavedShare {
 public:
  SavedShare() = default;
  ~SavedShare() { give_back(); }
  SavedShare(const SavedShare&) = delete;
  SavedShare& operator=(const SavedShare&) = delete;
  void take(std::int64_t bytes);
  void give_back() { take(0); }

 private:
  std::int64_t bytes_ = 0;
};

/// Returns memory of at least `bytes` bytes: an allocation that this thread gave back and that
/// fits, otherwise new memory. Throws MemoryError.
PlanMemory take_plan_memory(std::int64_t bytes);
/// Gives memory back for reuse by this thread. Up to 1 GiB is held, so that plans that run
/// alternately find theirs again; the oldest allocations are freed first. A larger allocation is
/// held alone.
void give_back(PlanMemory memory);
/// Frees the memory that this thread holds for reuse.
void free_held_plan_memory();

}  // namespace reel
