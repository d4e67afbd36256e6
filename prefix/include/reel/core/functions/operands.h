// core/functions/operands.h — Arg and NestedList, what public functions take besides tensors.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <utility>
#include <vector>

#include "reel/core/op.h"
#include "reel/core/tensor.h"

namespace reel {

namespace detail {

/// Whether i64 can hold a number that is no fraction: nothing else is converted to it.
template <class N>
constexpr bool fits_i64(N number) {
  if constexpr (std::is_floating_point_v<N>)
    return number >= -0x1p63 && number < 0x1p63;
  else
    return std::in_range<std::int64_t>(
        static_cast<std::conditional_t<std::is_same_v<N, bool> || sizeof(N) == 1, int, N>>(number));
}

}  // namespace detail

/// A tensor or a C++ number; a number takes the other operand's dtype (a fraction with integers is
/// a DTypeError).
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

/// What tensor() takes: numbers, booleans, and nested lists of them.
///
/// Numbers are kept exactly (integers as 64 bits, others in double) until the dtype is known.
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
