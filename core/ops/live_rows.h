// core/ops/live_rows.h — LiveRows, what of a sum over axes with padding is no padding.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "reel/core/ops/gemm.h"
#include "reel/core/tensor_type.h"

namespace reel {

/// Places of a walk over some axes, in ranges that rise.
struct LiveRows {
  struct Range {
    std::int64_t first, count;
  };
  std::vector<Range> ranges;
  std::int64_t count = 0;
};

/// Which places of a walk over `axes` of such a tensor, the last one fastest, are no padding; none
/// if all are, or if lengths run over other dims.
std::optional<LiveRows> live_rows(const TensorType& type, const std::vector<int>& axes);

/// The product of two matrices whose inner rows lie one behind the other (a_row and b_step are 1,
/// a_step is m, b_row is n), as a sum over some of them. Its bits depend on which these are.
void multiply_rows(DType dtype, const MatrixSizes& sizes, const LiveRows& rows, const void* a,
                   const void* b, void* c);

}  // namespace reel
