// core/ops/elementwise/elementwise_rules.h — type rules, checks and samples that element-wise ops
// share.
#pragma once

#include <span>

#include "reel/core/functions/operands.h"
#include "reel/core/op/op.h"
#include "reel/core/ops/elementwise/broadcast.h"

namespace reel {

/// The dtypes that an op takes.
enum class Takes { floats, numbers, integers, booleans, all };

constexpr bool takes(Takes what, DType dtype) {
  switch (what) {
    case Takes::floats:
      return is_float(dtype);
    case Takes::numbers:
      return dtype != boolean;
    case Takes::integers:
      return is_integer(dtype);
    case Takes::booleans:
      return dtype == boolean;
    default:
      return true;
  }
}

[[noreturn]] void refuse_dtype(std::string_view op, Takes what, std::string_view role,
                               const TensorType& type);

/// Throws ArgumentError: the function takes a tensor, but x is a number.
[[noreturn]] void refuse_number(std::string_view op, const Arg& x);

/// Returns the tensor of an argument. Throws ArgumentError for a number or an empty tensor.
inline const Tensor& tensor_of(std::string_view op, const Arg& x) {
  if (x.is_number()) refuse_number(op, x);
  check_defined(op, x.tensor());
  return x.tensor();
}

/// Returns the ops on one operand, the first ops of elementwise_ops().
std::span<const Op* const> unary_ops();

/// Gives the result the type of the operand. Throws DTypeError for a dtype outside kTakes.
template <Takes kTakes>
void unary_type(TypeArgs& args) {
  if (!takes(kTakes, args.in[0].dtype())) refuse_dtype(args.op.name, kTakes, "x", args.in[0]);
  args.out.push_back(args.in[0]);
}

/// Gives the result the dims that both operands are broadcast to. `name` and `roles` are names of
/// the function and its operands in messages. Throws DTypeError if dtypes differ or are outside
/// kTakes, ShapeError as broadcast().
template <Takes kTakes, bool kGivesBoolean = false>
void binary_type(TypeArgs& args, std::string_view name, Roles roles) {
  const TensorType &a = args.in[0], &b = args.in[1];
  if (a != b) check_same_dtype(name, a, b, roles);
  if (!takes(kTakes, a.dtype())) refuse_dtype(name, kTakes, roles[0], a);
  const DType dtype = kGivesBoolean ? boolean : a.dtype();
  const TensorType* like = a == b || b.rank() == 0 ? &a : a.rank() == 0 ? &b : nullptr;
  if (!like)
    args.out.push_back(broadcast(name, args.in, roles, dtype));
  else if (kGivesBoolean)
    args.out.push_back(retyped(*like, boolean));
  else
    args.out.push_back(*like);
}

template <Takes kTakes, bool kGivesBoolean = false>
void binary_type(TypeArgs& args) {
  binary_type<kTakes, kGivesBoolean>(args, args.op.name, kLhsRhs);
}

/// Returns samples with plain and named dims, a ragged one, none, and empty axes. Elements are from
/// an interval.
OpSamples unary_samples(double low, double high, DType dtype = f32);
/// Returns samples as above, and operands that broadcast in every way.
OpSamples binary_samples(double low_a, double high_a, double low_b, double high_b,
                         DType dtype = f32);

constexpr OpReads kReadsFirst{.inputs = 1}, kReadsBoth{.inputs = 3}, kReadsOutput{.outputs = 1};

}  // namespace reel
