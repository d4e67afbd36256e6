// core/functions/creation.h — tensors from numbers.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "reel/core/functions/operands.h"
#include "reel/core/tensor.h"

namespace reel {

/// What a vector or span may hold to become a tensor: numbers that some dtype holds exactly. float
/// and double, bool, and all integers but unsigned ones of 64 bits.
template <class T>
concept TensorElement = std::same_as<T, float> || std::same_as<T, double> ||
    std::same_as<T, bool> ||(std::integral<T>&& std::numeric_limits<T>::digits <=
                             std::numeric_limits<std::int64_t>::digits);

namespace detail {
/// What the elements of a tensor made of such numbers are stored as.
template <TensorElement T>
using StoredAs = std::conditional_t<
    std::floating_point<T> || std::same_as<T, bool>, T,
    std::conditional_t<std::numeric_limits<T>::digits <= 31, std::int32_t, std::int64_t>>;
template <class T>
Tensor tensor_of_span(std::span<const T> values, const Dims& dims, std::optional<DType> dtype);
Tensor tensor_of_bits(const std::vector<bool>& values, const Dims& dims,
                      std::optional<DType> dtype);
}  // namespace detail

/// From nested lists. dims: those of the result, or none for plain sizes read off the lists; a flat
/// list fills any dims in row-major order. One of them may be a name only: the numbers tell its
/// size. dtype: boolean, i32, or f32 after what the numbers are, unless given. Throws ShapeError
/// when the lists are uneven or the count differs, DTypeError when a fraction becomes an integer.
Tensor tensor(std::initializer_list<NestedList> values, const Dims& dims = {},
              std::optional<DType> dtype = {});
/// The same without dims: tensor({1., 2.}, f64). A template, so that {} stays no dims.
template <std::same_as<DType> Type>
Tensor tensor(std::initializer_list<NestedList> values, Type dtype) {
  return tensor(values, Dims(), std::optional(dtype));
}
/// From numbers in memory, which are copied. They keep their own type unless dtype says otherwise;
/// an integer becomes i32, or i64 where its type has more bits. dims: as for a flat list.
template <class T, std::size_t N>
requires TensorElement<std::remove_const_t<T>> Tensor tensor(std::span<T, N> values,
                                                             const Dims& dims = {},
                                                             std::optional<DType> dtype = {}) {
  using Stored = detail::StoredAs<std::remove_const_t<T>>;
  if constexpr (std::same_as<std::remove_const_t<T>, Stored>) {
    return detail::tensor_of_span(std::span<const Stored>(values), dims, dtype);
  } else {
    const std::vector<Stored> stored(values.begin(), values.end());
    return detail::tensor_of_span(std::span<const Stored>(stored), dims, dtype);
  }
}
/// From a vector: the same.
template <TensorElement T>
Tensor tensor(const std::vector<T>& values, const Dims& dims = {},
              std::optional<DType> dtype = {}) {
  if constexpr (std::same_as<T, bool>)
    return detail::tensor_of_bits(values, dims, dtype);
  else
    return tensor(std::span<const T>(values), dims, dtype);
}
template <TensorElement T, std::same_as<DType> Type>
Tensor tensor(const std::vector<T>& values, Type dtype) {
  return tensor(values, Dims(), std::optional(dtype));
}
/// A tensor without dims; an integer becomes i32, a fraction f32, unless dtype is given.
Tensor scalar(const NestedList& value, std::optional<DType> dtype = {});

Tensor zeros(const Dims& dims, DType dtype = f32);
Tensor ones(const Dims& dims, DType dtype = f32);
Tensor full(const Dims& dims, const NestedList& value, DType dtype = f32);
Tensor zeros(const TensorType& type);
/// Zeros with the type of x; of x only the shape is read.
Tensor zeros_like(const Tensor& x);
Tensor ones_like(const Tensor& x);
/// 0, 1, ... size-1 along one dim.
Tensor range(std::int64_t size, DType dtype = i32);
Tensor range(const Dim& dim, DType dtype = i32);
/// 1 where indices equals the position along `classes`, which becomes the last dim. indices:
/// integers.
Tensor one_hot(const Tensor& indices, const Dim& classes, DType dtype = f32);

}  // namespace reel
