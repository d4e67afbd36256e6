// core/ops/kernels/isa.h — selects among kernel tables that were compiled once per instruction set.
#pragma once

#include "reel/core/ops/elementwise/pointwise_kernels.h"

namespace reel {

/// Returns the table of a family for the instruction set of pointwise_table().
template <class Table>
const Table& for_this_processor(const Table& sse42_table, const Table& avx2_table,
                                const Table& avx512_table) {
  const PointwiseTable* chosen = &pointwise_table();
  return chosen == &avx512::table ? avx512_table
         : chosen == &avx2::table ? avx2_table
                                  : sse42_table;
}

}  // namespace reel
