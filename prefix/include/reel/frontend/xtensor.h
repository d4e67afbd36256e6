// frontend/xtensor.h — tensors from and to xtensor's containers, without a copy where memory can be
// handed over.
//
// Not part of reel.h: only who includes this needs xtensor (0.24 or later), and no flags.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>
#include <xtensor/xadapt.hpp>
#include <xtensor/xarray.hpp>
#include <xtensor/xtensor.hpp>

#include "reel/core/functions/creation.h"
#include "reel/core/tensor.h"
#include "reel/frontend/stored_type.h"

// In C++20, xtensor 0.24 takes an xarray's shape for one of a fixed rank of 4, so that evaluated
// sums of xarrays are wrong. What it has for C++17 is said here for the two shapes that xarrays
// have.
namespace xt::detail {
template <>
struct xtype_for_shape<dynamic_shape<std::size_t>> {
  template <class T, layout_type L>
  using type = xarray<T, L>;
};
template <>
struct xtype_for_shape<dynamic_shape<std::ptrdiff_t>> {
  template <class T, layout_type L>
  using type = xarray<T, L>;
};
}  // namespace xt::detail

namespace reel {
namespace detail {

template <class T>
concept Element = std::same_as<T, float> || std::same_as<T, double> ||
    std::same_as<T, std::int32_t> || std::same_as<T, std::int64_t> || std::same_as<T, bool>;

/// A container that a tensor's data lie in, alive as long as the tensor.
template <class C>
struct HeldContainer : BlockAttachment {
  explicit HeldContainer(C&& held) : container(std::move(held)) {}
  C container;
};

/// xt::xarray and xt::xtensor, which own their elements; adaptors only know where others' are.
template <class C>
struct OwnsElements : std::false_type {};
template <class Storage, xt::layout_type L, class Shape, class Tag>
struct OwnsElements<xt::xarray_container<Storage, L, Shape, Tag>> : std::true_type {};
template <class Storage, std::size_t N, xt::layout_type L, class Tag>
struct OwnsElements<xt::xtensor_container<Storage, N, L, Tag>> : std::true_type {};

/// A container whose memory a tensor can use, if its elements stand row by row.
template <class C>
concept Container = OwnsElements<C>::value && requires(C& container) {
  { container.storage().data() } -> std::same_as<typename C::value_type*>;
};

template <class C>
Tensor hold(C&& container, const TensorType& type) {
  if (type.numel() == 0) return Tensor(allocate_block(type));
  Ref<HeldContainer<C>> held(new HeldContainer<C>(std::move(container)));
  void* data = held->container.storage().data();
  return Tensor(allocate_foreign(type, data, std::move(held)));
}

}  // namespace detail

/// From an xtensor container or expression: xt::xarray, xt::xtensor, a + b, a view.
///
/// Of a row-major container that is given away (std::move(array)) the memory becomes the tensor's;
/// everything else is evaluated into new memory. Elements are float, double, int32_t, int64_t or
/// bool. Axes are called as `dims`, or plain; an undefined dim is a name, and gets the size that it
/// finds. Throws ShapeError when dims do not fit.
template <class E>
requires(xt::is_xexpression<std::remove_cvref_t<E>>::value) Tensor
    tensor(E&& expression, const Dims& dims = {}) {
  using X = std::remove_cvref_t<E>;
  using T = std::remove_cv_t<typename X::value_type>;
  static_assert(detail::Element<T>,
                "a tensor's elements are float, double, std::int32_t, std::int64_t or bool; use "
                "xt::cast<float>(...)");
  if constexpr (detail::Container<X> && !std::is_reference_v<E> && !std::is_const_v<E>) {
    if (expression.layout() == xt::layout_type::row_major) {
      const std::vector<std::int64_t> sizes(expression.shape().begin(), expression.shape().end());
      return detail::hold(std::move(expression),
                          stored_type(stored_as(dtype_of<T>()), sizes, dims, "tensor: the array"));
    }
  }
  return tensor(xt::xarray<T, xt::layout_type::row_major>(std::forward<E>(expression)), dims);
}

/// A view of a tensor's elements, which lives on its own and cannot be written to: padding is
/// there as it is. Throws DTypeError when they are no T, TraceError inside a trace.
///
///   xt::sum(as_xarray<float>(x), {1})
template <class T>
auto as_xarray(const Tensor& x) {
  const auto* data = static_cast<const T*>(x.checked_data(dtype_of<T>(), "as_xarray"));
  const auto& sizes = x.type().sizes();
  const xt::dynamic_shape<std::size_t> shape(sizes.begin(), sizes.end());
  using Data = const T*;
  return xt::adapt_smart_ptr<xt::layout_type::row_major>(Data(data), shape,
                                                         std::make_shared<const Tensor>(x));
}

/// The same elements in an array of their own.
template <class T>
xt::xarray<T> to_xarray(const Tensor& x) {
  const auto* data = static_cast<const T*>(x.checked_data(dtype_of<T>(), "to_xarray"));
  const auto& sizes = x.type().sizes();
  xt::xarray<T> result =
      xt::xarray<T>::from_shape(xt::dynamic_shape<std::size_t>(sizes.begin(), sizes.end()));
  std::copy_n(data, x.type().numel(), result.data());
  return result;
}

}  // namespace reel
