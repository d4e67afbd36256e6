// core/ops/only_if.h — only_if, for cotangents that a run of a trace may not have.
#pragma once

#include "reel/core/tensor.h"

namespace reel {

/// x where `present`, a boolean scalar, holds, else zeros, whatever x is: NaN too. Its cotangent
/// comes only then.
Tensor only_if(const Tensor& present, Tensor x);
/// The same with zeros of the sizes of `like`: where it does not hold, x need not have them.
Tensor only_if(const Tensor& present, Tensor x, const Tensor& like);

}  // namespace reel
