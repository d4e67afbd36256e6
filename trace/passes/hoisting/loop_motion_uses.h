// trace/passes/hoisting/loop_motion_uses.h — LoopMotionUses, the body values that are needed
// outside a loop.
#pragma once

#include <cstdint>
#include <vector>

#include "reel/trace/passes/hoisting/loop_fission.h"

namespace reel {

/// Tells which values of a loop's body are needed outside of it, as all time steps or as their sum.
/// Requires a LoopFission, which has decided which records leave the loop.
class LoopMotionUses {
 public:
  LoopMotionUses(const LoopAttrs& attrs, const LoopFission& split);

  /// Returns true if the record that makes the value leaves the loop.
  bool leaves(ValueId v) const { return leaves_[v]; }
  /// Returns true if the values of all time steps are needed outside, or, for a record that leaves,
  /// inside.
  bool values_of(ValueId v) const { return has_values_[v]; }
  bool sum_of(ValueId v) const { return has_sum_[v]; }
  /// Returns true if the results of a record that leaves are needed, not only sums that can be made
  /// without them.
  bool results_of(const OpRecord& record) const;
  /// Returns true if a stack or a sum of `term` is made outside.
  template <class Leaf>
  bool makes(const Leaf& leaf, ValueId term) const {
    return split_.can_make_outside(leaf) &&
           (split_.placement(term) == Placement::batched ||
            (leaves_[term] && split_.placement(term) == Placement::in_loop));
  }

 private:
  const Graph& body_;
  const LoopFission& split_;
  std::vector<std::uint8_t> leaves_, has_values_, has_sum_;  // by value
};

}  // namespace reel
