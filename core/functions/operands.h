// core/functions/operands.h — Arg and NestedList, arguments of public functions besides tensors.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <utility>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/op/op.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

namespace detail {

/// Returns true if the number is within the range of i64; other numbers are not converted to it.
template <class N>
constexpr bool fits_i64(N number) {
  if constexpr (std::is_floating_point_v<N>)
    return number >= -0x1p63 && number < 0x1p63;
  else
    return std::in_range<std::int64_t>(
        static_cast<std::conditional_t<std::is_same_v<N, bool> || sizeof(N) == 1, int, N>>(number));
}

}  // namespace detail

/// A tensor or a C++ number. A number takes the other operand's dtype; a fraction with an integer
/// tensor is a DTypeError. Borrows the tensor: must not outlive the call.
class Arg {
 public:
  Arg(const Tensor& tensor) : tensor_(&tensor) {}
  Arg(Tensor&& tensor) : tensor_(&tensor), temporary_(true) {}
  template <class N>
  requires std::is_arithmetic_v<N> Arg(N number)
      : number_(static_cast<double>(number)),
        integer_(detail::fits_i64(number) ? static_cast<std::int64_t>(number) : 0),
        is_floating_(std::is_floating_point_v<N> || !detail::fits_i64(number)) {}

  bool is_number() const { return !tensor_; }
  bool is_floating() const { return is_floating_; }
  double number() const { return number_; }
  std::int64_t integer() const { return integer_; }
  OpInput input() const {
    OpInput result(*tensor_);
    result.temporary = temporary_;
    return result;
  }
  const Tensor& tensor() const { return *tensor_; }

 private:
  const Tensor* tensor_ = nullptr;
  bool temporary_ = false;
  double number_ = 0;
  std::int64_t integer_ = 0;
  bool is_floating_ = false;
};

template <ElementIndex... Index>
const Tensor Tensor::at(const Index&... index) const {
  static_assert(sizeof...(Index) > 0, "at() takes an index for each of the first axes");
  const Arg indices[] = {Arg(index)...};
  return at_all(indices);
}

/// The argument of tensor(): numbers, booleans, and nested lists of them.
///
/// Numbers are stored exactly (integers in 64 bits, others in double) until the dtype is known.
class NestedList {
 public:
  template <class N>
  requires std::is_arithmetic_v<N> NestedList(N number)
      : kind_(std::is_same_v<N, bool>       ? boolean
              : std::is_floating_point_v<N> ? f64
              : detail::fits_i64(number)    ? i64
                                            : f64),
        number_(static_cast<double>(number)),
        integer_(detail::fits_i64(number) ? static_cast<std::int64_t>(number) : 0) {}
  NestedList(std::initializer_list<NestedList> items) : items_(items), is_list_(true) {}

  bool is_list() const { return is_list_; }
  DType kind() const { return kind_; }
  double number() const { return number_; }
  std::int64_t integer() const { return integer_; }
  const std::vector<NestedList>& items() const { return items_; }

 private:
  DType kind_ = i64;
  double number_ = 0;
  std::int64_t integer_ = 0;
  std::vector<NestedList> items_;
  bool is_list_ = false;
};

}  // namespace reel
REEL_API_END
