#include "reel/core/options/checkpoint_policy.h"

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"

namespace reel {

Checkpoint Checkpoint::every(std::int64_t steps) {
  if (steps < 1)
    throw ArgumentError(str("Checkpoint::every: got ", steps, " steps; give at least 1"));
  Checkpoint result;
  result.steps_ = steps;
  return result;
}

Checkpoint Checkpoint::budget(std::int64_t bytes) {
  if (bytes < 1)
    throw ArgumentError(str("Checkpoint::budget: got ", bytes, " bytes; give at least 1"));
  Checkpoint result;
  result.bytes_ = bytes;
  return result;
}

Checkpoint Checkpoint::where(SavingRule rule) const {
  if (!rule) throw ArgumentError("Checkpoint::where: the rule is empty; give a function");
  Checkpoint result = *this;
  result.rule_ = std::make_shared<const SavingRule>(std::move(rule));
  return result;
}

SwapMemory::SwapMemory(Spill spill) : spill_(std::move(spill)) {
  if (spill_->bytes_in_memory < 0)
    throw ArgumentError(
        str("Spill: bytes_in_memory is ", spill_->bytes_in_memory, "; give 0 or more"));
}

}  // namespace reel
