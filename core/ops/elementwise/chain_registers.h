// core/ops/elementwise/chain_registers.h — the registers of a chain's values.
#pragma once

#include <cstddef>
#include <vector>

#include "reel/core/ops/elementwise/pointwise_code.h"

namespace reel {

/// Returns, by value, the step after which its register is free; for a result, one after all steps.
inline std::vector<int> last_steps(const Chain& chain) {
  const std::size_t operands = chain.repeats.size();
  std::vector<int> last(operands + chain.steps.size(), -1);
  for (std::size_t s = 0; s < chain.steps.size(); ++s) {
    last[operands + s] = static_cast<int>(s);
    for (const int v : chain.steps[s].in)
      if (v >= 0) last[static_cast<std::size_t>(v)] = static_cast<int>(s);
  }
  for (const int v : chain.results)
    last[static_cast<std::size_t>(v)] = static_cast<int>(chain.steps.size());
  return last;
}

/// Assigns registers to values while walking through the steps.
class Registers {
 public:
  explicit Registers(const Chain& chain) : last_(last_steps(chain)), held_(last_.size(), -1) {}

  bool has(int v) const { return held_[at(v)] >= 0; }
  int of(int v) const { return held_[at(v)]; }
  void take(int v) {
    if (free_.empty()) free_.push_back(taken_++);
    held_[at(v)] = free_.back();
    free_.pop_back();
  }
  void release_behind(int step, int v) {
    if (v < 0 || !has(v) || last_[at(v)] != step) return;
    free_.push_back(held_[at(v)]);
    held_[at(v)] = -1;
  }
  int most() const { return taken_; }

 private:
  static std::size_t at(int v) { return static_cast<std::size_t>(v); }

  std::vector<int> last_, held_, free_;
  int taken_ = 0;
};

/// Calls load(v) before the first use of an operand, and step(s, v) to compute the value v.
template <class Load, class Step>
void go_through(const Chain& chain, Registers& registers, Load&& load, Step&& step) {
  const int operands = static_cast<int>(chain.repeats.size());
  for (int s = 0; s < static_cast<int>(chain.steps.size()); ++s) {
    const auto& in = chain.steps[static_cast<std::size_t>(s)].in;
    for (const int v : in)
      if (v >= 0 && !registers.has(v)) {
        registers.take(v);
        load(v);
      }
    registers.take(operands + s);
    step(chain.steps[static_cast<std::size_t>(s)], operands + s);
    for (const int v : {in[0], in[1], operands + s}) registers.release_behind(s, v);
  }
}

}  // namespace reel
