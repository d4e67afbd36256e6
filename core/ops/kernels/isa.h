// core/ops/kernels/isa.h — selects among kernel tables that were compiled once per instruction set.
#pragma once

#include "reel/core/runtime/instruction_set.h"

namespace reel {

/// Returns the table of a family for instruction_set(). Throws as that does.
template <class Table>
const Table& for_this_processor(const Table& sse42_table, const Table& avx2_table,
                                const Table& avx512_table) {
  const std::string_view chosen = instruction_set();
  return chosen == "avx512" ? avx512_table : chosen == "avx2" ? avx2_table : sse42_table;
}

}  // namespace reel
