// core/ops/kernels/softmax_table.h — SoftmaxTable, the loops of softmax and its relatives, per
// instruction set.
//
// Included by softmax_isa.cpp, like reduction_table.h.
#pragma once

#include "reel/core/ops/kernels/reduction_table.h"
#include "reel/core/runtime/isa_list.h"

namespace reel {

/// For f32 and f64. out is [outer, n, inner], of logsumexp [outer, inner]. The loops use one
/// thread, and the order of additions depends on the sizes only.
struct SoftmaxTable {
  ReductionLoop logsumexp[2];
  /// logsumexp in f64 of runs, for logits of either type. Requires inner = 1.
  ReductionLoop normalisers[2];
  ReductionLoop softmax[2], log_softmax[2];
  /// Writes factor · exp(x - normaliser) of n elements; 0 for x = -inf. Requires x <= normaliser,
  /// except for rounding.
  void (*scaled_shares[2])(const void* x, void* out, std::int64_t n, double normaliser,
                           double factor);
};

REEL_DECLARE_TABLES(SoftmaxTable, softmaxes)

}  // namespace reel
