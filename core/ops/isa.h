// core/ops/isa.h — choosing among tables of kernels that were compiled once per instruction set.
#pragma once

#include "reel/core/ops/pointwise_kernels.h"

namespace reel {

/// Returns the one of a family's tables that goes with pointwise_table().
template <class Table>
const Table& for_this_processor(const Table& sse42_table, const Table& avx2_table,
                                const Table& avx512_table) {
  const PointwiseTable* chosen = &pointwise_table();
  return chosen == &avx512::table ? avx512_table
         : chosen == &avx2::table ? avx2_table
                                  : sse42_table;
}

}  // namespace reel
