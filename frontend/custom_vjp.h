// frontend/custom_vjp.h — custom_vjp: a function with a gradient of its own.
#pragma once

#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "reel/core/mode.h"
#include "reel/core/ops/custom_vjp.h"
#include "reel/frontend/tree.h"

namespace reel {

namespace detail {

/// What backward must give back: cotangents for these tensors.
struct CustomArguments {
  std::vector<TensorType> types;
  std::vector<std::string> paths;
};
CustomArguments custom_arguments(const TreeLeaves& leaves, const std::vector<std::string>& paths);
/// The cotangents among leaves; an empty Tensor where None stands for none. Throws StructureError,
/// ShapeError or DTypeError, naming all that differ.
Tensors custom_cotangents(const TreeLeaves& given, const CustomArguments& expected);

/// The mode without its innermost tape: that tape takes the gradient from `backward`, those around
/// it have to know how residuals came about.
inline ThreadMode aside_of_tape() {
  ThreadMode mode = thread_mode;
  if (mode.tape) mode.tape = mode.tape->outer;
  return mode;
}

/// A tree of the same structure that holds no tensors.
template <class T>
T without_tensors(const T& tree) {
  TreeLeaves leaves = flatten(tree);
  for (TreeLeaf& leaf : leaves) leaf.tensor = Tensor();
  return unflatten(tree, leaves);
}

}  // namespace detail

/// A function with a gradient of its own: custom_vjp(forward, backward)(arguments...) is what
/// forward computes, and its cotangents are what backward makes of them.
///
/// forward: (arguments...) -> std::pair{result, residuals}, both trees. backward: (residuals,
/// cotangent of the result) -> a tuple with the cotangent of each argument, trees of their types
/// (for one argument, the cotangent alone is taken too); None{} stands for no cotangent of an
/// argument that is one tensor. Tensors that either captures get no gradient. Gradients of higher
/// order differentiate backward, and the residuals as forward computed them. Works in eager mode,
/// where backward runs when a gradient is asked for, and in a trace, where it is recorded with the
/// call. Throws StructureError, ShapeError or DTypeError, from the gradient in eager mode, where
/// backward returns another tree. Source: jax.custom_vjp.
template <class Forward, class Backward>
auto custom_vjp(Forward forward, Backward backward) {
  return [forward, backward](const auto&... arguments) {
    static_assert(
        detail::IsInstance<std::decay_t<decltype(forward(arguments...))>, std::pair>::value,
        "the forward function of custom_vjp returns std::pair{result, residuals}");
    auto [result, residuals] = [&] {
      const ModeScope scope(detail::aside_of_tape());
      return forward(arguments...);
    }();
    using Result = std::decay_t<decltype(result)>;
    using Residuals = std::decay_t<decltype(residuals)>;
    static_assert(std::is_invocable_v<const Backward&, const Residuals&, const Result&>,
                  "the backward function of custom_vjp is called with (residuals, cotangent of the "
                  "result), and returns a tuple with the cotangent of each argument");
    const std::tuple<std::decay_t<decltype(arguments)>...> all(arguments...);
    const TreeLeaves leaves = flatten(all);
    const auto on_leaves = [backward, expected = detail::custom_arguments(leaves, leaf_paths(all)),
                            result_like = detail::without_tensors(result),
                            residuals_like = detail::without_tensors(residuals)](
                               const Tensors& residuals, const Tensors& cotangents) {
      const Residuals r =
          unflatten(residuals_like, with_tensors(flatten(residuals_like), residuals));
      const Result c = unflatten(result_like, with_tensors(flatten(result_like), cotangents));
      return detail::custom_cotangents(flatten(backward(r, c)), expected);
    };
    const TreeLeaves result_leaves = flatten(result);
    return Result(unflatten(
        result,
        with_tensors(result_leaves, with_custom_vjp(tensors_of(leaves), tensors_of(result_leaves),
                                                    tensors_of(flatten(residuals)), on_leaves))));
  };
}

}  // namespace reel
