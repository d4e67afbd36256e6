// core/functions/creation.h — makes tensors from numbers.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/functions/operands.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// Element types of vectors and spans that tensor() accepts: numbers that a dtype can hold exactly.
/// These are float, double, bool, and all integers except unsigned integers of 64 bits.
template <class T>
concept TensorElement = std::same_as<T, float> || std::same_as<T, double> ||
    std::same_as<T, bool> ||(std::integral<T>&& std::numeric_limits<T>::digits <=
                             std::numeric_limits<std::int64_t>::digits);

namespace detail {
/// The element type in which a tensor stores these numbers.
template <TensorElement T>
using StoredAs = std::conditional_t<
    std::floating_point<T> || std::same_as<T, bool>, T,
    std::conditional_t<std::numeric_limits<T>::digits <= 31, std::int32_t, std::int64_t>>;
template <class T>
Tensor tensor_of_span(std::span<const T> values, const Dims& dims, std::optional<DType> dtype);
Tensor tensor_of_bits(const std::vector<bool>& values, const Dims& dims,
                      std::optional<DType> dtype);

template <class T>
inline constexpr bool kIsList = std::same_as<T, std::string>;
template <class T>
inline constexpr bool kIsList<std::vector<T>> = true;

/// Stops the compilation at elements that no tensor has, with the repair.
template <class T>
[[noreturn]] void refuse_element() {
  constexpr bool is_tensor = std::same_as<T, Tensor>;
  static_assert(!kIsList<T>,
                "rows become a tensor by ragged(rows, dims), also if they have one length");
  static_assert(!is_tensor, "tensors become one by stack(tensors, dim) or concat(tensors, dim)");
  static_assert(kIsList<T> || is_tensor,
                "a tensor's elements are float, double, bool or integers that std::int64_t holds: "
                "copy the numbers to a vector of one of them");
  std::abort();
}
}  // namespace detail

/// Returns a tensor from nested lists, or from a flat list that fills `dims` in row-major order.
///
/// dims: dims of the result; empty for plain sizes that follow from the lists. One of them may be a
/// name only; the numbers then determine its size.
/// dtype: default boolean, i32 or f32, by the kind of the numbers.
///
/// Throws ShapeError if the lists are uneven or the number of values differs from the dims,
/// DTypeError if a fraction would become an integer.
Tensor tensor(std::initializer_list<NestedList> values, const Dims& dims = {},
              std::optional<DType> dtype = {});
/// Returns a tensor with plain sizes: tensor({1., 2.}, f64). A template, so that {} means no dims.
template <std::same_as<DType> Type>
Tensor tensor(std::initializer_list<NestedList> values, Type dtype) {
  return tensor(values, Dims(), std::optional(dtype));
}
/// Returns a tensor from lists, with the dtype that holds T: tensor<float>({2}) is f32[1].
template <TensorElement T>
Tensor tensor(std::initializer_list<NestedList> values, const Dims& dims = {}) {
  return tensor(values, dims, dtype_of<detail::StoredAs<T>>());
}
/// Returns a tensor with a copy of numbers in memory. Default dtype: the numbers' type; integers
/// become i32, or i64 if their type has more bits. dims: as for a flat list.
template <class T, std::size_t N>
Tensor tensor(std::span<T, N> values, const Dims& dims = {}, std::optional<DType> dtype = {}) {
  using Element = std::remove_const_t<T>;
  if constexpr (!TensorElement<Element>) {
    detail::refuse_element<Element>();
  } else {
    using Stored = detail::StoredAs<Element>;
    if constexpr (std::same_as<Element, Stored>) {
      return detail::tensor_of_span(std::span<const Stored>(values), dims, dtype);
    } else {
      const std::vector<Stored> stored(values.begin(), values.end());
      return detail::tensor_of_span(std::span<const Stored>(stored), dims, dtype);
    }
  }
}
/// Returns a tensor with a copy of a vector, as for spans.
template <class T>
Tensor tensor(const std::vector<T>& values, const Dims& dims = {},
              std::optional<DType> dtype = {}) {
  if constexpr (std::same_as<T, bool>)
    return detail::tensor_of_bits(values, dims, dtype);
  else
    return tensor(std::span<const T>(values), dims, dtype);
}
template <class T, std::same_as<DType> Type>
Tensor tensor(const std::vector<T>& values, Type dtype) {
  return tensor(values, Dims(), std::optional(dtype));
}
/// Returns a tensor with a copy of an array, as for spans.
template <class T, std::size_t N>
Tensor tensor(const std::array<T, N>& values, const Dims& dims = {},
              std::optional<DType> dtype = {}) {
  return tensor(std::span<const T>(values), dims, dtype);
}
/// Returns a tensor without dims. Default dtype: i32 for an integer, f32 for a fraction, boolean
/// for a bool. Throws ArgumentError for a list.
Tensor scalar(const NestedList& value, std::optional<DType> dtype = {});
/// Returns scalar(value, dtype); tensor<T>(value) has the dtype that holds T. A template that
/// deduces the number's type, so that the lists {2} in tensor({2}) and tensor<T>({2}) are no
/// number.
template <class T = void, class Number>
requires std::is_arithmetic_v<Number> &&(std::is_void_v<T> || TensorElement<T>)Tensor
    tensor(Number value, std::optional<DType> dtype = {}) {
  if constexpr (!std::is_void_v<T>)
    if (!dtype) dtype = dtype_of<detail::StoredAs<T>>();
  return scalar(value, dtype);
}

/// Return a tensor over dims with all elements 0, 1 or `value`.
Tensor zeros(const Dims& dims, DType dtype = f32);
Tensor ones(const Dims& dims, DType dtype = f32);
Tensor full(const Dims& dims, const NestedList& value, DType dtype = f32);
Tensor zeros(const TensorType& type);
/// Returns zeros with the type of x. Reads only the type of x.
Tensor zeros_like(const Tensor& x);
/// Returns ones with the type of x. Reads only the type of x.
Tensor ones_like(const Tensor& x);
/// Returns 0, 1, ... size-1 along one dim. Throws ArgumentError for a negative number as size.
Tensor range(std::int64_t size, DType dtype = i32);
Tensor range(const Dim& dim, DType dtype = i32);
/// Returns 1 where indices equals the position along `classes`, else 0; `classes` is the last dim.
/// Throws DTypeError unless indices are integers, ShapeError if they have the dim `classes`.
Tensor one_hot(const Tensor& indices, const Dim& classes, DType dtype = f32);

}  // namespace reel
REEL_API_END
