// bench/libtorch_ops.h — libtorch's side of the cases of ops.h.
#pragma once

#include <cstdint>

#include "libtorch.h"

namespace reel::bench {

/// Returns libtorch's run of a case; an empty one if libtorch lacks the op.
OpRun libtorch_op(const OpCase& of, std::int64_t rows, std::int64_t columns);

}  // namespace reel::bench
