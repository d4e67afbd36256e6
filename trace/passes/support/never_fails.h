// trace/passes/support/never_fails.h — never_fails, which ops can fail only for their sizes and
// dtypes.
#pragma once

#include "reel/core/op/op.h"

namespace reel {

/// Returns true if the op gives a result for any values, provided that its types are right:
/// element-wise ops, products, reductions, and ops that only rearrange elements. Returns false for
/// ops that read indices, lengths or lists, and for ops that the .cpp does not list.
bool never_fails(const Op& op);

/// Returns true if never_fails(), and the kernel allocates nothing when its outputs are placed:
/// element-wise ops, gathers and updates of table rows, views, norms, and reductions over
/// neighbouring axes. Other kernels need scratch memory.
///
/// attrs: the op's.
bool never_fails_once_placed(const Op& op, const Attrs* attrs);

}  // namespace reel
