// frontend/grad.h — grad, value_and_grad and vjp: functions on functions.
#pragma once

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "reel/core/no_memory.h"
#include "reel/frontend/tape.h"
#include "reel/frontend/tree.h"

namespace reel {

namespace detail {

void own_tensors(TreeLeaves& leaves);
/// The argument with tensors of its own: a gradient is that of the argument, not of whatever else
/// is the same tensor.
template <class T>
T fresh_argument(const T& argument) {
  TreeLeaves leaves = flatten(argument);
  own_tensors(leaves);
  return unflatten(argument, leaves);
}
/// Throws ShapeError or DTypeError unless y is a floating scalar.
void check_scalar(const Tensor& y, const char* what);
/// Throws ShapeError or DTypeError unless each cotangent has the type of its value.
void check_cotangents(const Tensors& values, const Tensors& cotangents);

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

/// value_and_grad for the function that errors name.
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
        RecordingTape tape;
        const auto x = fresh_argument(first);
        watch_tree(tape, x);
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

/// value_and_grad(f)(x, rest...) gives std::pair{f(x, rest...), gradient of it with respect to x}.
///
/// f: returns a floating scalar, or std::pair{scalar, auxiliary}; then the first of the pair is
/// {scalar, auxiliary}. The gradient has the type of x: floating leaves their cotangents (exact
/// zeros without a path), integer and boolean leaves zeros of their dtype, Dims and numbers as they
/// were; an EmbeddingTable the rows that were read of it. Works in eager mode, in a trace, and
/// inside itself.
template <class F>
auto value_and_grad(F f) {
  return detail::value_and_grad_as("value_and_grad", std::move(f));
}

/// grad(f)(x, rest...) is the gradient alone.
template <class F>
auto grad(F f) {
  return detail::grad_as("grad", std::move(f));
}

/// f(x) and its pullback, which takes a cotangent of f(x) (a tree of its type) to one of x, as
/// often as it is called: in the body, branch or trace in which it was made, and in those inside.
/// Elsewhere the pullback throws TraceError.
template <class F, class X>
auto vjp(F&& f, const X& given) {
  auto tape = std::make_shared<RecordingTape>(true);
  const X x = detail::fresh_argument(given);
  detail::watch_tree(*tape, x);
  auto value = f(x);
  tape->stop();
  using Value = decltype(value);
  std::function<X(const Value&)> pullback =
      [tape, x, targets = tensors_of(flatten(value))](const Value& cotangent) {
        const Tensors cotangents = tensors_of(flatten(cotangent));
        detail::check_cotangents(targets, cotangents);
        return detail::gradient_of_tree(*tape, targets, cotangents, x);
      };
  return std::pair{std::move(value), std::move(pullback)};
}

}  // namespace reel
