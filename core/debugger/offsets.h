// core/debugger/offsets.h — the offsets by which debuggers read values of Reel from memory.
#pragma once

#include <cstdint>

#include "reel/core/base/visibility.h"

REEL_API_BEGIN
namespace reel {

/// An offset in bytes, or a size, under a name such as "TensorBlock.kind".
struct DebuggerOffset {
  char name[28];
  std::int32_t value;
};

/// The offsets of the members that reel_debugger.py reads; the last one has an empty name. A
/// debugger finds the constant by its name alone, without any debug information of the library.
extern "C" const DebuggerOffset reel_debugger_offsets[];

}  // namespace reel
REEL_API_END
