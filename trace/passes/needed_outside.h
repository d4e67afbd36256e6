// trace/passes/needed_outside.h — NeededOutside, what of a loop's body is had outside of it, and
// how.
#pragma once

#include <cstdint>
#include <vector>

#include "reel/trace/passes/time_split.h"

namespace reel {

/// Which values of a loop's body are needed outside of it, of all steps or added up over them, once
/// a TimeSplit has said what leaves it.
class NeededOutside {
 public:
  NeededOutside(const LoopAttrs& attrs, const TimeSplit& split);

  /// The value's maker leaves the loop.
  bool leaves(ValueId v) const { return leaves_[v]; }
  /// Of all steps; of what leaves, also inside.
  bool values_of(ValueId v) const { return has_values_[v]; }
  bool sum_of(ValueId v) const { return has_sum_[v]; }
  /// Of a record that leaves: what it gives is needed, not only sums that are made without it.
  bool results_of(const OpRecord& record) const;
  /// An output of the body, a stack or a sum, is made outside.
  bool makes(std::size_t output) const;

 private:
  const LoopAttrs& attrs_;
  const Graph& body_;
  const TimeSplit& split_;
  std::vector<std::uint8_t> leaves_, has_values_, has_sum_;  // by value
};

}  // namespace reel
