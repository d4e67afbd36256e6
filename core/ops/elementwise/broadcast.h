// core/ops/elementwise/broadcast.h — the broadcasting rule of operands with different dims, and its
// reverse.
#pragma once

#include <string_view>

#include "reel/core/op/op.h"
#include "reel/core/types/tensor.h"

namespace reel {

inline constexpr int kMaxBroadcastAxes = 32;

/// Names of an op's operands in messages.
using Roles = std::span<const std::string_view>;
inline constexpr std::string_view kLhsRhs[] = {"lhs", "rhs"};

/// True for the same dims in the same order. Costs a few pointer comparisons.
inline bool same_dims(const Dims& a, const Dims& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i].node() != b[i].node() || a[i].raw_size() != b[i].raw_size()) return false;
  return true;
}

/// Returns type.with(dtype), without a look-up in the usual cases.
TensorType retyped(const TensorType& type, DType dtype);

/// Returns the type with this dtype and the dims that operands of these types are broadcast to.
///
/// Named dims are matched by identity; the result has the dims, in order, of the first operand that
/// has all of them. Plain dims follow NumPy. If a trace does not know a size, a static size other
/// than 1 decides, otherwise it stays unknown. Operands without dims fit named and plain ones.
/// Throws ShapeError if no operand has all dims, if plain sizes do not fit, or if named dims meet
/// plain ones.
TensorType broadcast(std::string_view op, std::span<const TensorType> operands, Roles roles,
                     DType dtype);

/// Returns the step, in elements of an operand, along an axis of the broadcast result; 0 if the
/// operand is repeated there.
std::int64_t broadcast_stride(const TypeNode& operand, const TypeNode& result, int axis);

/// Throws DTypeError, naming both types and `cast`, unless the operands have one dtype.
void check_same_dtype(std::string_view op, const TensorType& a, const TensorType& b, Roles roles);

/// Returns the cotangent of an operand of type `to`, given the cotangent of the broadcast result.
/// Sums over the axes along which the operand was repeated (padding does not count), and restores
/// the operand's order. Returns the cotangent itself if the types are equal.
Tensor unbroadcast(Tensor cotangent, const TensorType& to);

/// unbroadcast as an op, for plain types for which a trace does not know the repeated axes.
extern const Op sum_to_op;

}  // namespace reel
