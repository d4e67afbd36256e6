// core/ops/sum_blocks.h — sums of some rows at a time.
#pragma once

#include <vector>

#include "reel/core/op.h"

namespace reel {

/// Which sum, and of how many blocks.
struct SumBlocksAttrs {
  std::vector<int> axes;  ///< the first ones of the tensor, ascending
  Dim blocks;             ///< of rows, along the first axis, which they divide evenly
  template <class F>
  static void fields(F&& f) {
    f("axes", &SumBlocksAttrs::axes);
    f("blocks", &SumBlocksAttrs::blocks);
  }
};

/// What sum gives for each block of rows by itself, to the bit, one behind the other.
extern const Op sum_blocks_op;

}  // namespace reel
