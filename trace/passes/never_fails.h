// trace/passes/never_fails.h — never_fails, which ops only sizes and dtypes can make fail.
#pragma once

#include "reel/core/op.h"

namespace reel {

/// Where its types are right, the op gives a result for any values: element-wise ops, products,
/// reductions, and what puts elements into another order. Not so what reads indices, lengths or
/// lists; and what is not listed here may fail.
bool never_fails(const Op& op);

/// True if never_fails, and the kernel allocates nothing where its outputs are placed: element-wise
/// ops, rows taken out of a table or put into one, views, and reductions over neighbouring axes.
/// Other kernels work in memory of their own. attrs: of the op.
bool never_fails_once_placed(const Op& op, const Attrs* attrs);

}  // namespace reel
