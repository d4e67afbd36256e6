#include "reel/trace/executors/checkpoints/revolve.h"

#include <algorithm>

namespace reel {
namespace {

/// Returns C(s + r, s), at most `most`.
std::int64_t reach(std::int64_t s, std::int64_t r, std::int64_t most) {
  if (r < 0 || s < 0) return 0;
  std::int64_t result = 1;
  for (std::int64_t i = 1; i <= std::min(s, r); ++i) {
    result = result * (std::max(s, r) + i) / i;
    if (result >= most) return most;
  }
  return result;
}

}  // namespace

std::int64_t Revolve::split(std::int64_t windows, std::int64_t slots) {
  std::int64_t r = 0;
  while (reach(slots, r, windows) < windows) ++r;
  // The windows before the next checkpoint are swept with all slots, the windows behind it with one
  // slot less: each costs at most r runs.
  const std::int64_t least = windows - reach(slots - 1, r, windows);
  return std::max({least, reach(slots, r - 2, windows), std::int64_t{1}});
}

std::vector<Revolve::Advance> Revolve::advances_to(std::int64_t end) {
  while (checkpoints_.size() > 1 && checkpoints_.back() >= end) checkpoints_.pop_back();
  std::vector<Advance> result;
  for (;;) {
    const std::int64_t from = checkpoints_.back(), windows = (end - from + window_ - 1) / window_,
                       slots = slots_ - static_cast<std::int64_t>(checkpoints_.size()) + 1;
    if (windows <= 1) return result;
    const bool takes_checkpoint = slots > 1;
    const std::int64_t to =
        from + window_ * (takes_checkpoint ? split(windows, slots) : windows - 1);
    result.push_back({from, to, takes_checkpoint});
    if (!takes_checkpoint) return result;
    checkpoints_.push_back(to);
  }
}

}  // namespace reel
