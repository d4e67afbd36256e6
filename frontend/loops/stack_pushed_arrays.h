// frontend/loops/stack_pushed_arrays.h — finds arrays that a recorded body only pushes to, and
// makes them stacks of the loop.
#pragma once

#include <vector>

#include "reel/core/graph/graph.h"

namespace reel {

/// Turns carries that are arrays into stacks: those that the body pushes to once per iteration and
/// uses nowhere else. Returns their places among the carries.
///
/// Rewrites body and cond without these carries; the body returns the pushed values behind its
/// carries. The loop then saves no arrays, and the reverse loop reads the pushed values from the
/// stacks.
///
///   carries (%a): %2 = list_size(%a); %3 = list_write(%a, %x, %2); return %3
///     becomes      return behind the carries %3 = identity(%x)
///
/// cond may be null.
std::vector<int> take_out_pushed_arrays(Ref<Graph>& body, Ref<Graph>& cond, int carries);

}  // namespace reel
