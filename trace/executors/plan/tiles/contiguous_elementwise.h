// trace/executors/plan/tiles/contiguous_elementwise.h — ContiguousElementwise: an element-wise op
// with its inner loop chosen in advance.
#pragma once

#include <optional>

#include "reel/core/op/op.h"
#include "reel/core/ops/kernels/pointwise_table.h"
#include "reel/core/types/tensor.h"

namespace reel {

/// An op with operands in the layout of its result: one call of the inner loop that its kernel
/// would look up.
struct ContiguousElementwise {
  UnaryLoop unary = nullptr;
  FlatLoop binary = nullptr;
  std::int64_t count = 0;

  /// Computes the op. out: written; must not overlap any operand.
  void run(OpInputs in, const Tensor& out) const {
    const void* first = in[0].tensor->block()->data;
    if (binary)
      binary(first, in[1].tensor->block()->data, out.block()->data, count);
    else
      unary(first, out.block()->data, count);
  }
};

/// Returns nothing if the op has no such loop, or if an operand is repeated (broadcast).
std::optional<ContiguousElementwise> contiguous_elementwise(const Op& op,
                                                            std::span<const TensorType> in,
                                                            const TensorType& result);

}  // namespace reel
