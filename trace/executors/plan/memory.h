// trace/executors/plan/memory.h — where the values of a plan lie in one piece of memory.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace reel {

/// A value that needs `bytes` from the instruction that makes it to the last one that reads it.
struct PlannedBuffer {
  std::int64_t bytes = 0;
  int first = 0, last = 0;
  std::int64_t offset = 0;  ///< given by place_buffers, a multiple of 64
};

/// The most bytes that are needed at a time, whatever their places.
std::int64_t most_at_a_time(const std::vector<PlannedBuffer>& buffers);

/// Gives every buffer its place, so that two that are needed at a time never overlap -> the bytes
/// needed in all. Buffers come in the order of `first`; each takes the smallest gap that holds it.
std::int64_t place_buffers(std::vector<PlannedBuffer>& buffers);

struct FreePlanMemory {
  std::int64_t bytes = 0;
  void operator()(char* memory) const;
};

/// Memory for the values of a plan, 64-byte aligned. Not from the pools of tensors, since it may be
/// as large as all of a run.
struct PlanMemory {
  std::unique_ptr<char, FreePlanMemory> data;
  std::int64_t bytes() const { return data.get_deleter().bytes; }
};

/// What of a plan's memory keeps values for a gradient, as memory() counts it, while it is taken.
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

/// What was given back on this thread and fits, else new memory. Pieces that were given back are
/// held while they are a GiB in all, so that plans that take turns find theirs again; the oldest go
/// to the system first, and a piece above that is held alone.
PlanMemory take_plan_memory(std::int64_t bytes);
void give_back(PlanMemory memory);
/// Frees what this thread holds of it.
void free_held_plan_memory();

}  // namespace reel
