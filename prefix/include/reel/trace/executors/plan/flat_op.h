// trace/executors/plan/flat_op.h — FlatOp, an element-wise op whose loop is known beforehand.
#pragma once

#include <optional>

#include "reel/core/op.h"
#include "reel/core/ops/pointwise_table.h"
#include "reel/core/tensor.h"

namespace reel {

/// What is left to do for an op whose operands lie as its result does: a call of the loop that its
/// kernel would look up.
struct FlatOp {
  UnaryLoop unary = nullptr;
  FlatLoop binary = nullptr;
  std::int64_t count = 0;

  /// out: to be written to; no operand overlaps with it.
  void run(OpInputs in, const Tensor& out) const {
    const void* first = in[0].tensor->block()->data;
    if (binary)
      binary(first, in[1].tensor->block()->data, out.block()->data, count);
    else
      unary(first, out.block()->data, count);
  }
};

/// None where the op is not such, or an operand is repeated.
std::optional<FlatOp> flat_op(const Op& op, std::span<const TensorType> in,
                              const TensorType& result);

}  // namespace reel
