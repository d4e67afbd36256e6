#include "reel/core/runtime/allocation_limit.h"

#include <limits>

#include "reel/core/base/quantities.h"
#include "reel/core/base/str.h"

namespace reel {
namespace {
constinit thread_local std::int64_t limit = std::numeric_limits<std::int64_t>::max();
}  // namespace

AllocationLimit::AllocationLimit(std::int64_t bytes) : before_(limit) { limit = bytes; }
AllocationLimit::~AllocationLimit() { limit = before_; }

void AllocationLimit::check(std::int64_t bytes) {
  if (bytes > limit)
    throw AllocationLimitError(
        str("a value of ", bytes_text(bytes), " is above the limit of ", bytes_text(limit)));
}

}  // namespace reel
