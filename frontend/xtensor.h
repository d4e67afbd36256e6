// frontend/xtensor.h — conversions from and to xtensor's containers, without a copy if possible.
//
// Not part of reel.h: only programs that include this header need xtensor (0.24 or later). It needs
// no flags; xtensor 0.24 itself needs -fno-relaxed-template-template-args with clang 19.
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

#include "reel/core/base/visibility.h"
#include "reel/core/functions/creation.h"
#include "reel/core/types/tensor.h"
#include "reel/frontend/files/stored_type.h"

// In C++20, xtensor 0.24 takes an xarray's shape for a fixed one of rank 4, so that evaluated sums
// of xarrays are wrong. These specialisations restore its C++17 behaviour for the two shapes of
// xarrays.
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

REEL_API_BEGIN
namespace reel {
namespace detail {

template <class T>
concept Element = std::same_as<T, float> || std::same_as<T, double> ||
    std::same_as<T, std::int32_t> || std::same_as<T, std::int64_t> || std::same_as<T, bool>;

/// A container that owns a tensor's data and lives as long as the tensor.
template <class C>
struct HeldContainer : BlockAttachment {
  explicit HeldContainer(C&& held) : container(std::move(held)) {}
  C container;
};

/// True for xt::xarray and xt::xtensor, which own their elements; adaptors do not.
template <class C>
struct OwnsElements : std::false_type {};
template <class Storage, xt::layout_type L, class Shape, class Tag>
struct OwnsElements<xt::xarray_container<Storage, L, Shape, Tag>> : std::true_type {};
template <class Storage, std::size_t N, xt::layout_type L, class Tag>
struct OwnsElements<xt::xtensor_container<Storage, N, L, Tag>> : std::true_type {};

/// A container whose memory a tensor can use, if its elements are in row-major order.
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

/// Returns a tensor with the elements of an xtensor container or expression: xt::xarray,
/// xt::xtensor, a + b, a view.
///
/// Takes over the memory of a moved-in row-major container (std::move(array)); evaluates anything
/// else into new memory. Elements must be float, double, int32_t, int64_t or bool. Axes become
/// `dims`, or plain ones if dims are empty; an undefined dim gives a name only. Throws ShapeError
/// if dims do not fit.
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

/// Returns a read-only view of a tensor's elements, padding included. The view shares ownership of
/// the memory, so it may outlive x. Throws DTypeError if x has no elements of type T, TraceError
/// inside a trace.
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

/// Returns a copy of the elements as an array. Throws as as_xarray does.
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
REEL_API_END
