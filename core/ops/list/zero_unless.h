// core/ops/list/zero_unless.h — zero_unless, for cotangents that may be absent in a run of a trace.
#pragma once

#include "reel/core/types/fwd.h"
#include "reel/core/types/tensor.h"

namespace reel {

extern const Op zero_unless_op;

/// Returns `x` if the boolean scalar `present` is true, otherwise zeros of x's type, even if x is
/// NaN. No cotangent flows to x if `present` is false.
Tensor zero_unless(const Tensor& present, Tensor x);
/// Returns the same with zeros of the type of `like`: if `present` is false, x may have other
/// sizes.
Tensor zero_unless(const Tensor& present, Tensor x, const Tensor& like);

}  // namespace reel
