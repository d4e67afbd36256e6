// core/ops/elementwise/add_to.h — adds a tensor to another one, in the memory of that one.
#pragma once

#include "reel/core/types/tensor.h"

namespace reel {

/// Computes to += term, element by element. Requires equal types.
void add_to(const Tensor& to, const Tensor& term);
/// Computes blocks += block, element by element in f64, for a block of f32. Allocates `blocks` if
/// it is undefined.
void add_block(Tensor& blocks, const Tensor& block);

}  // namespace reel
