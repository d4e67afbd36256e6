// trace/executors/plan/base/buffer_assignment.h — buffer assignment: places the values of a plan in
// one allocation.
#pragma once

#include <cstdint>
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

}  // namespace reel
