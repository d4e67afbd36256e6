#include "reel/trace/executors/checkpoints/reverse_schedule.h"

#include <algorithm>

#include "reel/trace/executors/checkpoints/checkpoint_schedule.h"

namespace reel {

std::size_t ReverseSchedule::checkpoint_before(std::int64_t chunk) const {
  return static_cast<std::size_t>(
      std::upper_bound(checkpoints_.begin(), checkpoints_.end(), chunk) - checkpoints_.begin() - 1);
}

bool ReverseSchedule::continues(std::int64_t begin, std::int64_t end, std::int64_t together) const {
  if (!revolve_ || is_over_gaps(together) != (together_ > 0)) return false;
  if (!together_) return checkpoint_before(end - 1) == checkpoint_;
  return together == together_ && end - begin == together && (end - origin_) % window_ == 0 &&
         checkpoint_before(std::max<std::int64_t>(end - window_, 0)) == checkpoint_;
}

bool ReverseSchedule::find(std::int64_t begin, std::int64_t end, std::int64_t together,
                           const Measure& measure) {
  if (continues(begin, end, together)) return false;
  checkpoint_ = checkpoint_before(end - 1);
  window_ = end_of_gap(checkpoint_) - checkpoints_[checkpoint_];
  std::int64_t slots = 1;
  if (loop_.policy.bytes) {
    const Bytes bytes = measure(checkpoint_);
    const std::int64_t all = slots_of(loop_, bytes.state);
    slots = std::max<std::int64_t>(all - CheckpointSchedule::most(all), 0) + 1;
    std::int64_t fit =
        std::min(window_, loop_.policy.bytes / 2 / std::max<std::int64_t>(bytes.chunk, 1));
    if (is_in_chunks_ && together > 1) fit -= together;  // beside the buffer of the request
    window_ = std::max<std::int64_t>(fit, 1);
  }
  together_ = 0;
  origin_ = first();
  if (is_over_gaps(together)) {
    window_ =
        end - begin < together ? end - begin : std::max(window_ / together * together, together);
    together_ = end - begin;
    checkpoint_ = checkpoint_before(std::max<std::int64_t>(end - window_, 0));
    origin_ = end - (end - first() + window_ - 1) / window_ * window_;
  }
  revolve_.emplace(origin_, window_, slots);
  return true;
}

std::vector<Revolve::Advance> ReverseSchedule::advances_to(std::int64_t end) {
  std::vector<Revolve::Advance> result = revolve_->advances_to(end);
  for (Revolve::Advance& advance : result) advance.from = std::max(advance.from, first());
  return result;
}

}  // namespace reel
