// core/types/print.h — print_running, which prints tensors without their finished entries.
#pragma once

#include <iosfwd>
#include <span>

#include "reel/core/types/tensor.h"

namespace reel {

/// Prints as operator<< does, but `-` for elements for which a mask is false.
///
/// running: booleans, each over some of the tensor's dims.
void print_running(std::ostream& out, const Tensor& tensor, std::span<const Tensor> running);

}  // namespace reel
