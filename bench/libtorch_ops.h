// bench/libtorch_ops.h — libtorch's side of the cases of ops.h.
#pragma once

#include <cstdint>

#include "libtorch.h"

namespace reel::bench {

OpRun libtorch_op(const OpCase& of, std::int64_t rows, std::int64_t columns);

}  // namespace reel::bench
