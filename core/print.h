// core/print.h — tensors as text, where some entries have nothing to show.
#pragma once

#include <iosfwd>
#include <span>

#include "reel/core/tensor.h"

namespace reel {

/// Prints as operator<< does, with `-` in place of elements for which a mask is false.
///
/// live: booleans, each over some of the tensor's dims.
void print_live(std::ostream& out, const Tensor& tensor, std::span<const Tensor> live);

}  // namespace reel
