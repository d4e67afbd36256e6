// core/ops/kernels/reduction_table.h — ReductionTable, the loops of reductions, per instruction
// set.
//
// Included by *_isa.cpp files, which are compiled for several processors. Must not include
// headers with shared inline functions: the linker might keep one compiled for the newest
// processor.
#pragma once

#include <cstdint>

#include "reel/core/runtime/isa_list.h"

namespace reel {

/// A contiguous operand around the reduced axes: outer blocks of n rows of `inner` elements.
struct Reduced {
  std::int64_t outer, n, inner;
};

/// out is [outer, inner].
using ReductionLoop = void (*)(const void* x, void* out, const Reduced& sizes);

/// Columns are DTypes in their order; loops are null for dtypes that the op refuses. The loops use
/// one thread, and the order of additions depends on the sizes only.
struct ReductionTable {
  ReductionLoop sum[5], prod[5];
  ReductionLoop max[5], min[5];
  ReductionLoop argmax[5], argmin[5];  ///< i32: the first of the largest, or smallest
  ReductionLoop any, all;
};

REEL_DECLARE_TABLES(ReductionTable, reductions)

}  // namespace reel
