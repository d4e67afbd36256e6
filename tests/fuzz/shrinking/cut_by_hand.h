// tests/fuzz/shrinking/cut_by_hand.h — CutByHand, which truncates gradients in the body of a scan,
// as the option truncate should.
#pragma once

#include "reel/tests/fuzz/machine.h"

namespace reel::fuzz {

/// Counts the iterations of each leaf of a scan's state, and makes the leaf constant for gradients
/// at the beginning of each piece. Counters are additional tensors of the state, so the counter of
/// an entry stands still before the entry begins and after it has finished. Requires eager mode;
/// does nothing for scans without is_cut_by_hand.
class CutByHand {
 public:
  CutByHand(const Instruction& scan, const Machine& machine);

  State with_counters(State state) const;
  State without_counters(State state) const;
  /// Returns the state that the body sees.
  State cut(const State& state) const;
  /// Returns the state that the body returned, with counters one iteration further.
  State counted(State next, const State& before) const;

 private:
  Tensor truncates_at(const Tensor& counter) const;

  int steps_ = 0;
  std::vector<Dims> dims_;  // of a counter for each tensor, and one for all arrays
};

}  // namespace reel::fuzz
