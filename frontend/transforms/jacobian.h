// frontend/transforms/jacobian.h — jacobian, jacfwd, hessian and linearize.
#pragma once

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/frontend/transforms/jvp.h"
#include "reel/frontend/transforms/vmap.h"

REEL_API_BEGIN
namespace reel {

namespace detail {

/// One unit tensor for each element of a tensor.
struct UnitTensors {
  Tensor all;  ///< [front..., dims of the tensor]
  Dims front;  ///< for each dim of the tensor another one with its size
};
UnitTensors unit_tensors(const char* function, const Tensor& like);
/// Renames the first axes of a Jacobian to the dims that `rows` has and `columns` lacks.
Tensor named_jacobian(Tensor jacobian, const Dims& front, const Dims& rows, const Dims& columns);
/// Throws StructureError if a leaf of x is a TensorArray: it has no axes for a Jacobian.
void check_columns(const char* function, const TreeLeaves& x);
/// Throws DTypeError or ArgumentError unless y is a floating tensor.
void check_rows(const char* function, const Tensor& y);
/// Returns a Jacobian with the axes of y in front, given one with the axes of x in front.
Tensor with_rows_first(const Tensor& jacobian, int columns);
/// Returns y with new dims in place of its dims that x has, too.
Tensor apart_from_dims(Tensor y, const Dims& x);
/// Returns the zeros that jacfwd has for an argument that is not floating.
Tensor no_derivatives(const Tensor& y, const Tensor& x);

/// Applies f to every unit tensor at once.
template <class X, class F>
X for_every_unit(F f, const UnitTensors& units) {
  std::function<X(const Tensor&)> at_once = std::move(f);
  for (std::size_t i = units.front.size(); i-- > 0;) {
    const Dim dim = units.front[i];
    at_once = [inner = std::move(at_once), dim](const Tensor& unit) -> X {
      return vmap(inner, dim.is_named() ? std::optional(dim) : std::nullopt)(unit);
    };
  }
  return at_once(units.all);
}

/// Returns the tangent of f at x, for a tangent of leaf i; other leaves stay.
template <class F, class X>
Tensor pushed_leaf(const char* function, const F& f, const X& x, std::size_t i,
                   const Tensor& tangent) {
  const TreeLeaves leaves = flatten(x);
  Tensors tangents = tensors_of(leaves);
  for (std::size_t k = 0; k < tangents.size(); ++k)
    tangents[k] = k == i ? tangent : zero_gradient(tangents[k]);
  const auto [y, pushed] = jvp(f, x, unflatten(x, with_tensors(leaves, tangents)));
  check_rows(function, y);
  return pushed;
}

template <class F, class X>
constexpr bool has_jacobian() {
  constexpr bool kReturnsTensor =
      std::is_same_v<std::decay_t<std::invoke_result_t<F, const X&>>, Tensor>;
  static_assert(kReturnsTensor,
                "the function given to jacobian, jacfwd or linearize returns a Tensor; for a tree, "
                "call it once for each tensor of the tree");
  return kReturnsTensor;
}

/// Returns jacobian(f). Errors name `function`.
template <class F>
auto jacobian_as(const char* function, F f) {
  return [function, f = std::move(f)]<class X>(const X& x) -> X {
    if constexpr (!has_jacobian<const F&, X>()) {
      return x;
    } else {
      const TreeLeaves leaves = flatten(x);
      check_columns(function, leaves);
      const auto [y, pullback] = vjp(f, x);
      check_rows(function, y);
      const UnitTensors units = unit_tensors(function, y);
      const Tensors from = tensors_of(leaves);
      // Without empty tensors, which vmap refuses.
      const Tensors rows = for_every_unit<Tensors>(
          [&pull = pullback](const Tensor& unit) {
            Tensors all = tensors_of(flatten(pull(unit)));
            std::erase_if(all, [](const Tensor& row) { return !row.is_defined(); });
            return all;
          },
          units);
      Tensors all = from;
      auto next = rows.begin();
      for (std::size_t i = 0; i < all.size(); ++i)
        if (from[i].is_defined())
          all[i] = named_jacobian(*next++, units.front, y.dims(), from[i].dims());
      return unflatten(x, with_tensors(leaves, all));
    }
  };
}

}  // namespace detail

/// jacobian(f)(x) returns the derivatives of all elements of f(x): a tree of the type of x, in
/// which each tensor has the dims of f(x) in front of its own. Tensors that are not floating have
/// zeros of their dtype.
///
/// f: returns a floating tensor. x: a tree. If f(x) and x share a dim, the dim in front is
/// another Dim of this name and size. A ragged dim of f(x) becomes static, as long as its longest
/// entry; derivatives of padding are 0. All pullbacks run at once (vmap); the forward run happens
/// once. Cheaper than jacfwd if f(x) has fewer elements than x. Throws DTypeError if f(x) is not
/// floating. Source: jax.jacrev.
template <class F>
auto jacobian(F f) {
  return detail::jacobian_as("jacobian", std::move(f));
}

/// jacfwd(f)(x) returns jacobian(f)(x), computed with one tangent for each element of x, all at
/// once. Cheaper than jacobian if x has fewer elements than f(x). Source: jax.jacfwd.
template <class F>
auto jacfwd(F f) {
  return [f = std::move(f)]<class X>(const X& x) -> X {
    if constexpr (!detail::has_jacobian<const F&, X>()) {
      return x;
    } else {
      const TreeLeaves leaves = flatten(x);
      detail::check_columns("jacfwd", leaves);
      Tensors all = tensors_of(leaves);
      const Tensors from = all;
      Tensor y;
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (!from[i].is_defined()) continue;
        if (!is_float(from[i].dtype())) {
          if (!y.is_defined()) detail::check_rows("jacfwd", y = f(x));
          all[i] = detail::no_derivatives(y, from[i]);
          continue;
        }
        const detail::UnitTensors units = detail::unit_tensors("jacfwd", from[i]);
        const Tensor columns = detail::for_every_unit<Tensor>(
            [&](const Tensor& unit) {
              return detail::apart_from_dims(detail::pushed_leaf("jacfwd", f, x, i, unit),
                                             from[i].dims());
            },
            units);
        all[i] = detail::with_rows_first(
            detail::named_jacobian(columns, units.front, from[i].dims(), {}), from[i].rank());
      }
      return unflatten(x, with_tensors(leaves, all));
    }
  };
}

/// hessian(f)(x) returns the second derivatives of a floating scalar: the dims of x twice, where
/// the first ones are other Dims of the same names and sizes. x: a tensor. Computed as the Jacobian
/// of the gradient. hvp() multiplies it by a vector without computing it. Source: jax.hessian.
template <class F>
auto hessian(F f) {
  return [gradient = detail::grad_as("hessian", std::move(f))](const Tensor& x) -> Tensor {
    return detail::jacobian_as("hessian",
                               [&](const Tensor& at) -> Tensor { return gradient(at); })(x);
  };
}

/// Returns std::pair{f(x), push}. push maps a tangent, a tree of the type of x, to the tangent of
/// f(x).
///
/// f runs once. Each call of push computes the tangent from residuals of f; vmap(push, dim) pushes
/// many tangents at once. push may be called where the pullback of vjp may. Throws as jvp does.
/// Source: jax.linearize.
template <class F, class X>
auto linearize(F&& f, const X& given) {
  if constexpr (!detail::takes_primals<std::remove_reference_t<F>, X>()) {
    return std::pair{given, std::function<X(const X&)>()};
  } else {
    const auto tape = std::make_shared<RecordingTape>(true);
    const X x = detail::fresh_argument(given);
    const Tensors sources = tensors_of(flatten(x));
    for (const Tensor& source : sources)
      if (source.is_defined()) tape->watch(source);
    auto value = detail::as_state(detail::call_with_state(f, x));
    tape->stop();
    using Value = decltype(value);
    std::function<Value(const X&)> push = [tape, x, value, sources](const X& tangents) {
      const TreeLeaves directions = flatten(tangents);
      detail::check_tangents(
          "linearize", flatten(x), [&] { return leaf_paths(x, "primals"); }, directions,
          [&] { return leaf_paths(tangents, "primals"); });
      return Tape::from(detail::pushed_forward(*tape, sources, tensors_of(directions),
                                               tensors_of(flatten(value))),
                        value);
    };
    return std::pair{std::move(value), std::move(push)};
  }
}

}  // namespace reel
REEL_API_END
