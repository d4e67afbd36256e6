#include "reel/core/types/sizes.h"

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"

namespace reel {

std::int32_t checked_i32(std::int64_t number, std::string_view op, std::string_view what) {
  if (number > kLargestI32 || number < std::numeric_limits<std::int32_t>::min())
    throw ShapeError(str(op, ": ", what, " is ", number, ", which does not fit into i32; at most ",
                         kLargestI32, " can be counted"));
  return static_cast<std::int32_t>(number);
}

std::int64_t add_sizes(std::int64_t a, std::int64_t b, std::string_view op) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum))
    throw ShapeError(str(op, ": ", a, " and ", b, " elements are more than 64 bits can count"));
  return sum;
}

std::int64_t multiply_sizes(std::int64_t a, std::int64_t b, std::string_view op) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product))
    throw ShapeError(str(op, ": ", a, " times ", b, " elements are more than 64 bits can count"));
  return product;
}

void refuse_axis(const TensorType& type, int axis) {
  throw ShapeError(str(type, " has no axis ", axis));
}

void check_operand(std::string_view op, std::string_view operand, const TensorType& type,
                   const TensorType& expected, Fits how) {
  bool fits = type.dtype() == expected.dtype() && type.rank() == expected.rank() &&
              type.is_list() == expected.is_list();
  for (std::size_t i = 0; fits && i < type.dims().size(); ++i) {
    const Dim &dim = type.dims()[i], &wanted = expected.dims()[i];
    const std::int64_t size = type.sizes()[i], wanted_size = expected.sizes()[i];
    const bool may_differ = how == Fits::sizes || !dim.is_named() || !wanted.is_named() ||
                            dim.is_symbol() || wanted.is_symbol();
    fits = dim == wanted || (may_differ && (size < 0 || wanted_size < 0 || size == wanted_size));
  }
  if (!fits) throw ShapeError(str(op, ": ", operand, " is ", type, ", but should be ", expected));
}

void check_positions_fit(std::string_view op, const TensorType& x, int axis, int count) {
  check_axes(x, axis, count);
  std::int64_t size = 1;
  for (int i = axis; i < axis + count; ++i) {
    const Dim& dim = x.dims()[static_cast<std::size_t>(i)];
    if (!dim.has_size()) return;
    size = multiply_sizes(size, dim.raw_size(), op);
  }
  if (size - 1 > kLargestI32)
    throw ShapeError(str(op, ": positions among ", size, " elements of ", x,
                         " do not fit into i32, whose largest number is ", kLargestI32,
                         "; take the axis in parts"));
}

}  // namespace reel
