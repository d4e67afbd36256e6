// core/dims/slice_uses.h — SliceUses, the dims of a trace that were used as slices of Dims from
// outside of it.
#pragma once

#include <utility>
#include <vector>

#include "reel/core/types/dim.h"

namespace reel {

/// While it lives, records on this thread each symbol that is_slice_of() found to be a slice of a
/// concrete Dim: the traced function names that Dim, and a symbol stands for the slice. Later calls
/// of the trace must then have slices of the same Dims (TracedFunction throws ShapeError). If
/// several are open, the innermost one records.
class SliceUses {
 public:
  SliceUses() : around_(innermost_) { innermost_ = this; }
  ~SliceUses() { innermost_ = around_; }
  SliceUses(const SliceUses&) = delete;
  SliceUses& operator=(const SliceUses&) = delete;

  static SliceUses* innermost() { return innermost_; }
  void note(const Dim& symbol, const Dim& whole) { uses_.emplace_back(symbol, whole); }
  /// Returns pairs of a symbol and its whole Dim, in the order of the calls; pairs may repeat.
  const std::vector<std::pair<Dim, Dim>>& uses() const { return uses_; }

 private:
  static inline constinit thread_local SliceUses* innermost_ = nullptr;
  SliceUses* around_;
  std::vector<std::pair<Dim, Dim>> uses_;
};

}  // namespace reel
