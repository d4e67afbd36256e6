// The public functions and operators of element-wise ops on two operands, and their number
// arguments; the list of element-wise ops.
#include "reel/core/ops/elementwise/elementwise.h"

#include <array>
#include <iterator>
#include <limits>
#include <optional>
#include <vector>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/op_errors.h"
#include "reel/core/ops/elementwise/broadcast.h"
#include "reel/core/ops/elementwise/elementwise_rules.h"
#include "reel/core/ops/elementwise/pointwise_kernels.h"
#include "reel/core/ops/registry.h"
#include "reel/core/ops/shape/sliced_dims.h"
#include "reel/core/types/mode.h"

namespace reel {
namespace {

std::string text(const Arg& number) {
  if (!number.is_floating()) return str(number.integer());
  std::string result = str(number.number());
  if (result.find_first_not_of("-0123456789") == std::string::npos) result += ".0";
  return result;
}

[[gnu::noinline]] Tensor apply_to_number(const Op& op, const Arg& a, const Arg& b) {
  if (a.is_number() && b.is_number())
    throw ArgumentError(str(op.name, ": both operands are numbers, ", text(a), " and ", text(b),
                            "; one must be a tensor, e.g. scalar(", text(a), ')'));
  check_defined(op.name, (a.is_number() ? b : a).tensor());
  if (a.is_number()) return bind(op, {literal(op.name, a, "rhs", b.tensor().type()), b.input()});
  return bind(op, {a.input(), literal(op.name, b, "lhs", a.tensor().type())});
}
/// Applies the op where one operand may have a slice of the other's dim.
[[gnu::noinline]] Tensor apply_to_slices(const Op& op, const Arg& a, const Arg& b) {
  Tensor x = a.tensor(), y = b.tensor();
  return meet_slices(std::array{&x, &y}) ? bind(op, {x, y}) : bind(op, {a.input(), b.input()});
}
Tensor apply(const Op& op, const Arg& a, const Arg& b) {
  if (a.is_number() || b.is_number()) return apply_to_number(op, a, b);
  if (has_slices() && !(a.tensor().type() == b.tensor().type())) return apply_to_slices(op, a, b);
  return bind(op, {a.input(), b.input()});
}

}  // namespace

void refuse_number(std::string_view op, const Arg& x) {
  throw ArgumentError(str(op, ": takes a tensor, but was given the number ", text(x),
                          "; write scalar(", text(x), ')'));
}

Tensor literal(std::string_view op, const Arg& number, std::string_view role,
               const TensorType& met) {
  const DType dtype = met.dtype();
  if (is_float(dtype)) return literal(number, dtype);
  const auto refuse = [&](const char* what, DType repair) {
    throw DTypeError(str(op, ": the literal ", text(number), " is ", what, ", but ", role, " is ",
                         met, "; cast the tensor, e.g. cast(", role, ", ", repair, ')'));
  };
  if (number.is_floating()) refuse("floating", f32);
  if (dtype == boolean && number.integer() != 0 && number.integer() != 1)
    refuse("neither 0 nor 1", i32);
  if (dtype == i32 && number.integer() != static_cast<std::int32_t>(number.integer()))
    refuse("out of range", i64);
  return literal(number, dtype);
}

Tensor literal(const Arg& number, DType dtype) {
  const std::int64_t integer = number.integer();
  if (is_tracing())
    return is_float(dtype)    ? full({}, number.number(), dtype)
           : dtype == boolean ? full({}, integer != 0, dtype)
                              : full({}, integer, dtype);
  // In eager mode a tape need not record how a constant was made.
  static const auto& types =
      *new std::array{TensorType(f32), TensorType(f64), TensorType(i32), TensorType(i64),
                      TensorType(boolean)};  // never destroyed: global objects may use it at exit
  Tensor result(allocate_block(types[column_of(dtype)]));
  visit(dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_floating_point_v<T>)
      *result.data<T>() = static_cast<T>(number.number());
    else
      *result.data<T>() = static_cast<T>(integer);
  });
  return result;
}

Tensor isnan(const Arg& x) {
  const Tensor& t = tensor_of("isnan", x);
  return t != t;
}
Tensor isinf(const Arg& x) {
  const Tensor& t = tensor_of("isinf", x);
  return is_float(t.dtype()) ? abs(t) == std::numeric_limits<double>::infinity() : t != t;
}
Tensor isfinite(const Arg& x) {
  const Tensor& t = tensor_of("isfinite", x);
  return is_float(t.dtype()) ? abs(t) < std::numeric_limits<double>::infinity() : t == t;
}

Tensor add(const Arg& a, const Arg& b) { return apply(add_op, a, b); }
Tensor sub(const Arg& a, const Arg& b) { return apply(sub_op, a, b); }
Tensor mul(const Arg& a, const Arg& b) { return apply(mul_op, a, b); }
Tensor div(const Arg& a, const Arg& b) { return apply(div_op, a, b); }
Tensor remainder(const Arg& a, const Arg& b) { return apply(remainder_op, a, b); }
Tensor floor_divide(const Arg& a, const Arg& b) { return apply(floor_divide_op, a, b); }
Tensor mod(const Arg& a, const Arg& b) { return apply(mod_op, a, b); }
Tensor pow(const Arg& a, const Arg& b) {
  // Faster ops for frequent exponents, as in PyTorch and NumPy.
  if (!a.is_number() && b.is_number() && is_float(tensor_of("pow", a).dtype())) {
    if (b.number() == 2) return square(a);
    if (b.number() == 3) {  // not square(a), which may take the memory of a temporary
      const Tensor& x = tensor_of("pow", a);
      return x * square(x);
    }
    if (b.number() == 0.5) return sqrt(a);
    if (b.number() == -1) return reciprocal(a);
  }
  return apply(pow_op, a, b);
}
Tensor maximum(const Arg& a, const Arg& b) { return apply(maximum_op, a, b); }
Tensor minimum(const Arg& a, const Arg& b) { return apply(minimum_op, a, b); }
Tensor clip(const Arg& x, const Arg& low, const Arg& high) {
  const TensorType& type = tensor_of("clip", x).type();
  const auto bound = [&](const Op& op, const Arg& of, const Arg& bound) {
    return bound.is_number() ? bind(op, {of.input(), literal("clip", bound, "x", type)})
                             : apply(op, of, bound);
  };
  return bound(clip_high_op, bound(clip_low_op, x, low), high);
}

Tensor equal(const Arg& a, const Arg& b) { return apply(equal_op, a, b); }
Tensor not_equal(const Arg& a, const Arg& b) { return apply(not_equal_op, a, b); }
Tensor less(const Arg& a, const Arg& b) { return apply(less_op, a, b); }
Tensor less_equal(const Arg& a, const Arg& b) { return apply(less_equal_op, a, b); }
Tensor greater(const Arg& a, const Arg& b) { return apply(greater_op, a, b); }
Tensor greater_equal(const Arg& a, const Arg& b) { return apply(greater_equal_op, a, b); }
Tensor logical_and(const Arg& a, const Arg& b) { return apply(logical_and_op, a, b); }
Tensor logical_or(const Arg& a, const Arg& b) { return apply(logical_or_op, a, b); }
Tensor logical_xor(const Arg& a, const Arg& b) { return apply(logical_xor_op, a, b); }

Tensor operator+(const Arg& a, const Arg& b) { return apply(add_op, a, b); }
Tensor operator-(const Arg& a, const Arg& b) { return apply(sub_op, a, b); }
Tensor operator*(const Arg& a, const Arg& b) { return apply(mul_op, a, b); }
Tensor operator/(const Arg& a, const Arg& b) { return apply(div_op, a, b); }
Tensor operator%(const Arg& a, const Arg& b) { return apply(remainder_op, a, b); }
Tensor operator==(const Arg& a, const Arg& b) { return apply(equal_op, a, b); }
Tensor operator!=(const Arg& a, const Arg& b) { return apply(not_equal_op, a, b); }
Tensor operator<(const Arg& a, const Arg& b) { return apply(less_op, a, b); }
Tensor operator<=(const Arg& a, const Arg& b) { return apply(less_equal_op, a, b); }
Tensor operator>(const Arg& a, const Arg& b) { return apply(greater_op, a, b); }
Tensor operator>=(const Arg& a, const Arg& b) { return apply(greater_equal_op, a, b); }
Tensor operator&&(const Arg& a, const Arg& b) { return apply(logical_and_op, a, b); }
Tensor operator||(const Arg& a, const Arg& b) { return apply(logical_or_op, a, b); }

namespace {
const Op* const kBinaryOps[] = {
    &add_op,           &sub_op,         &mul_op,        &div_op,          &remainder_op,
    &floor_divide_op,  &mod_op,         &pow_op,        &maximum_op,      &minimum_op,
    &clip_low_op,      &clip_high_op,   &tanh_grad_op,  &sigmoid_grad_op, &gelu_grad_op,
    &equal_op,         &not_equal_op,   &less_op,       &less_equal_op,   &greater_op,
    &greater_equal_op, &logical_and_op, &logical_or_op, &logical_xor_op,  &sum_to_op,
};
}  // namespace
std::span<const Op* const> elementwise_ops() {
  static const auto& ops = []() -> const std::vector<const Op*>& {
    const std::span<const Op* const> unary = unary_ops();
    auto* list = new std::vector<const Op*>(unary.begin(), unary.end());
    list->insert(list->end(), std::begin(kBinaryOps), std::end(kBinaryOps));
    return *list;
  }();
  return ops;
}

}  // namespace reel
