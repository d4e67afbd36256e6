// core/dims/slice_uses.h — SliceUses, which slices a trace takes for those of Dims from outside of
// it.
#pragma once

#include <utility>
#include <vector>

#include "reel/core/types/dim.h"

namespace reel {

/// While it lives, holds for which symbols of traces on this thread is_slice_of returned true
/// because of a Dim that is no symbol.
class SliceUses {
 public:
  SliceUses() : around_(innermost_) { innermost_ = this; }
  ~SliceUses() { innermost_ = around_; }
  SliceUses(const SliceUses&) = delete;
  SliceUses& operator=(const SliceUses&) = delete;

  static SliceUses* innermost() { return innermost_; }
  void note(const Dim& symbol, const Dim& whole) { uses_.emplace_back(symbol, whole); }
  const std::vector<std::pair<Dim, Dim>>& uses() const { return uses_; }

 private:
  static inline constinit thread_local SliceUses* innermost_ = nullptr;
  SliceUses* around_;
  std::vector<std::pair<Dim, Dim>> uses_;
};

}  // namespace reel
