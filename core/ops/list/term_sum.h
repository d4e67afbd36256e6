// core/ops/list/term_sum.h — TermSum, the sum of the terms that a loop's iterations produce.
#pragma once

#include <utility>

#include "reel/core/ops/kernels/long_sums.h"
#include "reel/core/types/tensor.h"

namespace reel {

/// True if the terms of this iteration, counted from 0 in the order in which a loop runs, begin a
/// block of kPlainTerms.
inline bool begins_block(std::int64_t iteration) {
  return iteration > 0 && iteration % kPlainTerms == 0;
}

/// Adds terms of f32 in f32 within a block, and blocks in f64: no term is lost after millions of
/// iterations. Blocks of lists are added in pairs, and pairs in pairs. A loop of at most
/// kPlainTerms iterations adds its terms one by one. Other dtypes are always added one by one.
///
/// Made of ops, so that a tape records each addition. Eager mode, the interpreter and the dataflow
/// executor share it; plans do the same in place (loop_run.cpp).
class TermSum {
 public:
  /// Adds the block to the earlier ones. Must be called before the first term of an iteration that
  /// begins a block.
  void end_block();
  void add(Tensor&& term);
  /// Returns the sum, an empty Tensor if there was no term. Leaves the sum empty.
  Tensor take();

 private:
  Tensor block_, blocks_;  ///< of this block; of all earlier blocks, in f64
  Tensors list_blocks_;    ///< of lists: place i is empty or the sum of 2^i earlier blocks
};

/// A TermSum that ends its blocks itself, after every kPlainTerms terms.
class CountedTermSum {
 public:
  void add(Tensor&& term) {
    if (begins_block(count_++)) sum_.end_block();
    sum_.add(std::move(term));
  }
  Tensor take() {
    count_ = 0;
    return sum_.take();
  }

 private:
  TermSum sum_;
  std::int64_t count_ = 0;
};

}  // namespace reel
