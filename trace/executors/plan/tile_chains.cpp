#include "reel/trace/executors/plan/tile_chains.h"

#include <algorithm>

namespace reel {
namespace {

class Order {
 public:
  Order(std::span<const StepInOrder> steps, int values)
      : steps_(steps), is_waited_for_(static_cast<std::size_t>(values)) {
    for (const StepInOrder& step : steps) is_waited_for_[static_cast<std::size_t>(step.out)] = true;
    for (std::size_t s = 0; s < steps.size(); ++s) left_.push_back(static_cast<int>(s));
  }

  bool is_done() const { return left_.empty(); }
  /// The kind of the first step that could be done; kNoChain where any such is of no chain: those
  /// come first, so that chains that wait for them grow.
  int next_kind() const {
    int kind = kNoChain;
    for (std::size_t i = left_.size(); i-- > 0;) {
      if (!is_ready(left_[i])) continue;
      kind = step(left_[i]).kind;
      if (kind == kNoChain) return kind;
    }
    return kind;
  }
  /// Takes steps of a kind in their order, as long as take() says so of each that could be done.
  template <class Take>
  void take_ready(int kind, Take&& take) {
    bool is_full = false;
    std::erase_if(left_, [&](int s) {
      if (is_full || step(s).kind != kind || !is_ready(s)) return false;
      is_full = !take(s);
      if (!is_full) is_waited_for_[static_cast<std::size_t>(step(s).out)] = false;
      return !is_full;
    });
  }

 private:
  const StepInOrder& step(int s) const { return steps_[static_cast<std::size_t>(s)]; }
  bool is_ready(int s) const {
    return std::none_of(step(s).in.begin(), step(s).in.end(),
                        [&](int v) { return is_waited_for_[static_cast<std::size_t>(v)]; });
  }

  std::span<const StepInOrder> steps_;
  std::vector<bool> is_waited_for_;  ///< by value: a step that is left makes it
  std::vector<int> left_;
};

}  // namespace

std::vector<std::vector<int>> steps_in_chains(
    std::span<const StepInOrder> steps, int values,
    const std::function<bool(const std::vector<int>&)>& fits) {
  std::vector<std::vector<int>> groups;
  Order order(steps, values);
  while (!order.is_done()) {
    const int kind = order.next_kind();
    if (kind == kNoChain) {
      order.take_ready(kind, [&](int s) {
        groups.push_back({s});
        return true;
      });
      continue;
    }
    std::vector<int> chain;
    order.take_ready(kind, [&](int s) {
      chain.push_back(s);
      if (chain.size() == 1 || fits(chain)) return true;
      chain.pop_back();
      return false;
    });
    groups.push_back(std::move(chain));
  }
  return groups;
}

}  // namespace reel
