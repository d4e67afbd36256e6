// frontend/transforms/grad.h — grad, value_and_grad and vjp: reverse-mode derivatives of functions.
#pragma once

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "reel/core/base/visibility.h"
#include "reel/core/runtime/no_memory.h"
#include "reel/frontend/transforms/tape.h"
#include "reel/frontend/tree/leaves.h"
#include "reel/frontend/tree/tree.h"

REEL_API_BEGIN
namespace reel {

namespace detail {

void own_tensors(TreeLeaves& leaves);
/// Returns the argument with its floating tensors replaced by identities of them. The gradient is
/// then with respect to the argument alone, even if the function also reads the same tensor from
/// elsewhere.
template <class T>
T fresh_argument(const T& argument) {
  TreeLeaves leaves = flatten(argument);
  own_tensors(leaves);
  return unflatten(argument, leaves);
}
/// Throws ArgumentError for an empty Tensor, and ShapeError or DTypeError unless y is a floating
/// scalar.
void check_scalar(const Tensor& y, const char* what);
/// Throws ArgumentError unless the tree has a floating tensor, an array of them, or a table.
void check_differentiable(const TreeRef& tree, const char* function);
/// Throws StructureError, ShapeError or DTypeError unless each cotangent has the type of its value.
void check_cotangents(const TreeLeaves& values, const PathsFn& value_paths,
                      const TreeLeaves& cotangents, const PathsFn& cotangent_paths);

template <class F, class... Args>
constexpr bool can_be_called() {
  static_assert(
      std::is_invocable_v<F, Args...>,
      "grad(f) and value_and_grad(f) are called with the arguments of f, f(x, rest...); "
      "they take the gradient with respect to the first, which may be a tuple or a struct");
  return std::is_invocable_v<F, Args...>;
}
template <class F, class... Args>
inline constexpr bool kCanBeCalled = can_be_called<F, Args...>();

template <class F, class X>
constexpr bool takes_argument() {
  constexpr bool kTakesArgument = std::is_invocable_v<F, const X&>;
  static_assert(kTakesArgument,
                "vjp(f, x) calls f(x); for several arguments, give a function of a tuple or a "
                "struct");
  if constexpr (kTakesArgument)
    return returns_tree<std::invoke_result_t<F, const X&>>();
  else
    return false;
}

template <class T>
inline constexpr bool kIsScalarAndMore = std::is_same_v<T, Tensor>;
template <class Scalar, class Auxiliary>
inline constexpr bool kIsScalarAndMore<std::pair<Scalar, Auxiliary>> =
    std::is_same_v<std::decay_t<Scalar>, Tensor>;

template <class Value>
constexpr bool has_gradient() {
  static_assert(kIsScalarAndMore<std::decay_t<Value>>,
                "the function given to grad or value_and_grad returns a Tensor, the scalar to take "
                "the gradient of, or std::pair{scalar, auxiliary}");
  return kIsScalarAndMore<std::decay_t<Value>>;
}
template <class Value>
inline constexpr bool kHasGradient = has_gradient<Value>();

/// Returns value_and_grad(f). Errors name `function`.
template <class F>
auto value_and_grad_as(const char* function, F f) {
  return [function, f](const auto& first, const auto&... rest) {
    using X = std::decay_t<decltype(first)>;
    if constexpr (!kCanBeCalled<const F&, const X&, decltype(rest)...>) {
      return std::pair{Tensor(), X(first)};
    } else if constexpr (!kHasGradient<decltype(f(first, rest...))>) {
      return std::pair{Tensor(), X(first)};
    } else {
      return as_memory_error(function, [&] {
        check_differentiable(TreeRef(first), function);
        RecordingTape tape;
        const auto x = fresh_argument(first);
        watch_tree(tape, TreeRef(x));
        auto value = f(x, rest...);
        Tensor y;
        if constexpr (std::is_same_v<decltype(value), Tensor>)
          y = value;
        else
          y = value.first;
        check_scalar(y, function);
        auto gradient = gradient_of_tree(tape, {y}, {Tensor()}, x);
        return std::pair{std::move(value), std::move(gradient)};
      });
    }
  };
}

template <class F>
auto grad_as(const char* function, F f) {
  return [both = value_and_grad_as(function, std::move(f))](
             const auto& first, const auto&... rest) { return both(first, rest...).second; };
}

}  // namespace detail

/// value_and_grad(f)(x, rest...) returns std::pair{f(x, rest...), gradient with respect to x}.
///
/// f: returns a floating scalar, or std::pair{scalar, auxiliary}, which is then the first of the
/// returned pair. The gradient is a tree of the type of x. Floating leaves have their cotangents
/// (exact zeros if the scalar does not depend on them), integer and boolean leaves zeros of their
/// dtype; Dims and numbers are unchanged. For an EmbeddingTable it holds the table rows that were
/// read. Works in eager mode, in a trace, and nested in itself. Throws ArgumentError if x
/// has no floating tensor, or if f returns an empty Tensor; ShapeError or DTypeError if it returns
/// no floating scalar.
template <class F>
auto value_and_grad(F f) {
  return detail::value_and_grad_as("value_and_grad", std::move(f));
}

/// grad(f)(x, rest...) returns the gradient of value_and_grad alone.
template <class F>
auto grad(F f) {
  return detail::grad_as("grad", std::move(f));
}

/// Returns std::pair{f(x), pullback}. The pullback maps a cotangent of f(x), a tree of its type, to
/// a cotangent of x.
///
/// The pullback may be called any number of times, in the body, branch or trace in which it was
/// made and in those nested inside it; elsewhere it throws TraceError. Throws StructureError if the
/// cotangent has containers of other sizes or keys than f(x); ShapeError or DTypeError if a tensor
/// of it has another type than its value.
template <class F, class X>
auto vjp(F&& f, const X& given) {
  if constexpr (!detail::takes_argument<F&, X>()) {
    return std::pair{given, std::function<X(const X&)>()};
  } else {
    auto tape = std::make_shared<RecordingTape>(true);
    const X x = detail::fresh_argument(given);
    detail::watch_tree(*tape, detail::TreeRef(x));
    auto value = f(x);
    tape->stop();
    using Value = decltype(value);
    std::function<X(const Value&)> pullback = [tape, x, value](const Value& cotangent) {
      const TreeLeaves targets = flatten(value), cotangents = flatten(cotangent);
      detail::check_cotangents(
          targets, [&] { return leaf_paths(value); }, cotangents,
          [&] { return leaf_paths(cotangent); });
      return detail::gradient_of_tree(*tape, tensors_of(targets), tensors_of(cotangents), x);
    };
    return std::pair{std::move(value), std::move(pullback)};
  }
}

}  // namespace reel
REEL_API_END
