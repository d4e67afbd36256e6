// tests/peaks.h — the peak memory of a call.
#pragma once

#include "reel/core/runtime/memory.h"

namespace reel {

/// Returns the peak of each class of memory while f ran, minus the bytes in use before.
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
