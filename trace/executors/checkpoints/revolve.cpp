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

std::int64_t Revolve::split(std::int64_t leaves, std::int64_t slots) {
  std::int64_t r = 0;
  while (reach(slots, r, leaves) < leaves) ++r;
  // The leaves before the next checkpoint are swept with all slots, the leaves behind it with one
  // slot less: each costs at most r runs.
  const std::int64_t least = leaves - reach(slots - 1, r, leaves);
  return std::max({least, reach(slots, r - 2, leaves), std::int64_t{1}});
}

std::vector<Revolve::Advance> Revolve::way_to(std::int64_t end) {
  while (kept_.size() > 1 && kept_.back() >= end) kept_.pop_back();
  std::vector<Advance> result;
  for (;;) {
    const std::int64_t from = kept_.back(), leaves = (end - from + leaf_ - 1) / leaf_,
                       slots = slots_ - static_cast<std::int64_t>(kept_.size()) + 1;
    if (leaves <= 1) return result;
    const bool keeps = slots > 1;
    const std::int64_t to = from + leaf_ * (keeps ? split(leaves, slots) : leaves - 1);
    result.push_back({from, to, keeps});
    if (!keeps) return result;
    kept_.push_back(to);
  }
}

}  // namespace reel
