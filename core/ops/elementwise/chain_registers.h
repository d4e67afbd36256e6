// core/ops/elementwise/chain_registers.h — the registers of a chain's values.
#pragma once

#include <array>
#include <cstddef>
#include <variant>
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
  /// Returns two registers without values, for the step at hand.
  std::array<int, 2> spare() {
    while (free_.size() < 2) free_.insert(free_.begin(), taken_++);
    return {free_[free_.size() - 1], free_[free_.size() - 2]};
  }
  int most() const { return taken_; }

 private:
  static std::size_t at(int v) { return static_cast<std::size_t>(v); }

  std::vector<int> last_, held_, free_;
  int taken_ = 0;
};

/// True for a step of several instructions, which needs spare registers.
inline bool is_function(const Chain::Step& step) {
  const Unary* const op = step.op ? std::get_if<Unary>(&*step.op) : nullptr;
  return op && (*op == Unary::exp || *op == Unary::tanh || *op == Unary::sigmoid);
}

/// Calls load(v) before the first use of an operand, and step(s, v, spare) to compute the value v.
/// spare: two registers, if the step is a function.
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
    const Chain::Step& at = chain.steps[static_cast<std::size_t>(s)];
    step(at, operands + s, is_function(at) ? registers.spare() : std::array<int, 2>{-1, -1});
    for (const int v : {in[0], in[1], operands + s}) registers.release_behind(s, v);
  }
}

}  // namespace reel
