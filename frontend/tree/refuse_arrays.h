// frontend/tree/refuse_arrays.h — refuse_arrays, for functions on trees that compute with tensors
// only.
#pragma once

#include "reel/frontend/tree/leaves.h"

namespace reel::detail {

/// Throws ArgumentError, which names the leaf, if a leaf is a TensorArray of floating elements. The
/// function would leave its elements out without a word.
void refuse_arrays(const char* function, const TreeLeaves& leaves, const PathsFn& paths);

}  // namespace reel::detail
