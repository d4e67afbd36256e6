// core/ops/broadcast.h — the rule by which operands of different dims meet, and its reverse.
#pragma once

#include <string_view>

#include "reel/core/op.h"
#include "reel/core/tensor.h"

namespace reel {

inline constexpr int kMostBroadcastAxes = 32;

/// By what names messages call the operands of an op.
using Roles = std::span<const std::string_view>;
inline constexpr std::string_view kLhsRhs[] = {"lhs", "rhs"};

/// The same dims in the same order: a few pointer comparisons.
inline bool same_dims(const Dims& a, const Dims& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i].node() != b[i].node() || a[i].raw_size() != b[i].raw_size()) return false;
  return true;
}

/// type.with(dtype), without a look-up in the usual cases.
TensorType retyped(const TensorType& type, DType dtype);

/// The type with this dtype, and the dims that operands of these types are broadcast to.
///
/// Named dims are matched by identity; the result has the dims, in their order, of the first
/// operand that has all of them. Plain dims follow NumPy; where a trace does not know a size, a
/// static one other than 1 decides, else it stays unknown. Operands without dims go with both.
/// Throws ShapeError when no operand has all dims, when plain sizes do not fit, or when named dims
/// meet plain ones.
TensorType broadcast(std::string_view op, std::span<const TensorType> operands, Roles roles,
                     DType dtype);

/// Elements of an operand from one index to the next along an axis of the result that it is
/// broadcast to; 0 where it repeats.
std::int64_t broadcast_stride(const TypeNode& operand, const TypeNode& result, int axis);

/// Throws DTypeError, naming both types and `cast`, unless the operands have one dtype.
void check_same_dtype(std::string_view op, const TensorType& a, const TensorType& b, Roles roles);

/// The cotangent of an operand of type `to` that was broadcast to the cotangent's type: summed over
/// the axes along which the operand was repeated (padding does not count), in the operand's order.
/// Itself where types are equal.
Tensor unbroadcast(Tensor cotangent, const TensorType& to);

/// unbroadcast as an op, for plain types of which a trace does not know which axes were repeated.
extern const Op sum_to_op;

}  // namespace reel
