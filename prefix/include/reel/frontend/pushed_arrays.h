// frontend/pushed_arrays.h — arrays that a recorded body only pushes to: what it pushes is stacked
// up by the loop.
#pragma once

#include <vector>

#include "reel/core/graph.h"

namespace reel {

/// Which carries of a loop are such arrays, by their places among the carries.
///
/// One push an iteration, and no other use: body and cond are rewritten without them, and the body
/// gives what it pushes behind its carries. The loop then saves no array, and what the reverse
/// reads of what is pushed is there already.
///
///   carries (%a): %2 = list_size(%a); %3 = list_write(%a, %x, %2); return %3
///     becomes      return behind the carries %3 = identity(%x)
///
/// cond may be null.
std::vector<int> take_out_pushed_arrays(Ref<Graph>& body, Ref<Graph>& cond, int carries);

}  // namespace reel
