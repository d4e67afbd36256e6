// core/runtime/allocation_limit.h — AllocationLimit, the largest block that a thread may allocate.
#pragma once

#include <cstdint>

#include "reel/core/base/visibility.h"
#include "reel/core/runtime/memory.h"

REEL_API_BEGIN
namespace reel {

/// A block would be larger than the thread's AllocationLimit. Nothing was allocated.
class AllocationLimitError : public MemoryError {
 public:
  using MemoryError::MemoryError;
};

/// Limits the data of blocks that this thread allocates during its lifetime: a larger one is an
/// AllocationLimitError. Nested limits replace each other. A block in the thread's pool of freed
/// blocks may exceed the limit.
class AllocationLimit {
 public:
  explicit AllocationLimit(std::int64_t bytes);
  ~AllocationLimit();
  AllocationLimit(const AllocationLimit&) = delete;
  AllocationLimit& operator=(const AllocationLimit&) = delete;

  /// Throws AllocationLimitError if a block with `bytes` of data is above the limit.
  static void check(std::int64_t bytes);

 private:
  std::int64_t before_;
};

}  // namespace reel
REEL_API_END
