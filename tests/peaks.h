// tests/peaks.h — what a call takes of memory.
#pragma once

#include "reel/core/memory.h"

namespace reel {

/// What was there more of each class, at the most, while f ran, than before.
template <class F>
Memory peaks_of(const F& f) {
  reset_peak_memory();
  const Memory before = memory();
  f();
  Memory result = memory();
  for (MemoryUse Memory::*use : {&Memory::values, &Memory::saved, &Memory::checkpoints,
                                 &Memory::buffers, &Memory::parameters, &Memory::all})
    (result.*use).peak -= (before.*use).current;
  return result;
}

}  // namespace reel
