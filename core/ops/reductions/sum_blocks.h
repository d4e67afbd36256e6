// core/ops/reductions/sum_blocks.h — sums over blocks of rows.
#pragma once

#include <vector>

#include "reel/core/op/op.h"

namespace reel {

/// Attributes of sum_blocks_op.
struct SumBlocksAttrs {
  std::vector<int> axes;  ///< the first axes of the tensor, ascending
  Dim blocks;             ///< of rows, along the first axis; their number must divide it evenly
  template <class F>
  static void fields(F&& f) {
    f("axes", &SumBlocksAttrs::axes);
    f("blocks", &SumBlocksAttrs::blocks);
  }
};

/// Sums each block of rows separately, with the bits of sum on that block, and stacks the sums.
extern const Op sum_blocks_op;

}  // namespace reel
