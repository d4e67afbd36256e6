// trace/executors/plan/memory.h — where the values of a plan lie in one piece of memory.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

namespace reel {

/// A value that needs `bytes` from the instruction that makes it to the last one that reads it.
struct PlannedBuffer {
  std::int64_t bytes = 0;
  int first = 0, last = 0;
  std::int64_t offset = 0;  ///< given by place_buffers, a multiple of 64
};

/// Gives every buffer its place, so that two that are needed at a time never overlap -> the bytes
/// needed in all. Buffers come in the order of `first`; each takes the smallest gap that holds it.
std::int64_t place_buffers(std::vector<PlannedBuffer>& buffers);

/// Memory for the values of a plan, 64-byte aligned. Not from the pools of tensors, since it may be
/// as large as all of a run.
struct PlanMemory {
  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };
  std::unique_ptr<char, Free> data;
  std::int64_t bytes = 0;
};

/// What was given back on this thread and fits, else new memory. Pieces that were given back are
/// held while they are a GiB in all, so that plans that take turns find theirs again; the oldest go
/// to the system first, and a piece above that is held alone.
PlanMemory take_plan_memory(std::int64_t bytes);
void give_back(PlanMemory memory);

}  // namespace reel
