// tests/fuzz/cut_by_hand.h — CutByHand, what scan's truncate is to do, done by the body.
#pragma once

#include "reel/tests/fuzz/machine.h"

namespace reel::fuzz {

/// Counts the steps of each leaf of a scan's state, and makes the leaf a constant to gradients
/// where a piece of them begins. Counters are further tensors of the state, so that those of an
/// entry stand still for as long as it has not begun, or has ended. In eager mode only; does
/// nothing for scans that are not cut by hand.
class CutByHand {
 public:
  CutByHand(const Instruction& scan, const Machine& machine);

  State with_counters(State state) const;
  State without_counters(State state) const;
  /// What the body is to see.
  State cut(const State& state) const;
  /// What the body made of it, one step further.
  State counted(State next, const State& before) const;

 private:
  Tensor begins_piece(const Tensor& counter) const;

  int steps_ = 0;
  std::vector<Dims> dims_;  // of a counter for each tensor, and one for all arrays
};

}  // namespace reel::fuzz
