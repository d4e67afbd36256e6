#include "reel/trace/executors/checkpoints/checkpoint_schedule.h"

#include <algorithm>

namespace reel {

CheckpointSchedule::CheckpointSchedule(std::int64_t every, std::int64_t slots)
    : every_(std::max<std::int64_t>(every, 1)), most_(every ? 0 : most(slots)) {}

CheckpointSchedule::Decision CheckpointSchedule::before(std::int64_t step) {
  const std::int64_t at = place(step);
  ++calls_;
  if (at < next_) return {};
  Decision result{true};
  while (most_ && taken_ + result.takes > most_ && (taken_ > 1 || result.takes)) {
    ++result.drops;
    every_ *= 2;
    result.takes = result.takes && taken_ % 2 == 0;  // otherwise the one before it stays
    taken_ = (taken_ + 1) / 2;
  }
  taken_ += result.takes;
  next_ = (at / every_ + 1) * every_;
  return result;
}

std::int64_t checkpoints_taken(const LoopAttrs& attrs, std::int64_t slots, std::int64_t units,
                               std::int64_t unit) {
  CheckpointSchedule kept(attrs.policy.steps, slots);
  std::int64_t result = 0;
  for (std::int64_t k = 0; k < units; ++k) result += kept.before(k * unit).takes;
  return result;
}

std::int64_t slots_of(const LoopAttrs& attrs, std::int64_t state_bytes) {
  return std::max<std::int64_t>(attrs.policy.bytes / 2 / (state_bytes + kBytesOfWhich), 1);
}

}  // namespace reel
