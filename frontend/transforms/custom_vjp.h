// frontend/transforms/custom_vjp.h — custom_vjp, a function with a user-defined gradient.
#pragma once

#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "reel/core/base/visibility.h"
#include "reel/core/ops/control/custom_vjp.h"
#include "reel/core/types/mode.h"
#include "reel/frontend/tree/leaves.h"
#include "reel/frontend/tree/tree.h"

REEL_API_BEGIN
namespace reel {

namespace detail {

/// Types and paths of the tensors for which backward must return cotangents.
struct CustomArguments {
  std::vector<TensorType> types;
  std::vector<std::string> paths;
};
CustomArguments custom_arguments(const TreeLeaves& leaves, const std::vector<std::string>& paths);
/// Returns the cotangents among the leaves; an empty Tensor for None. Throws StructureError,
/// ShapeError or DTypeError; the message names all leaves that differ.
Tensors custom_cotangents(const TreeLeaves& given, const CustomArguments& expected);
/// Throws StructureError, ShapeError or DTypeError unless the tangents of custom_jvp have the types
/// of the result, which are the types of its cotangents.
void check_custom_tangents(const TreeLeaves& tangents, const PathsFn& tangent_paths,
                           const TreeLeaves& cotangents, const PathsFn& cotangent_paths);

/// Returns the mode without its innermost tape. That tape takes the gradient from `backward`; the
/// tapes around it must still record how the residuals were computed.
inline ThreadMode aside_of_tape() {
  ThreadMode mode = thread_mode;
  if (mode.tape) mode.tape = mode.tape->outer;
  return mode;
}

/// Returns a tree of the same structure with empty tensors.
template <class T>
T without_tensors(const T& tree) {
  TreeLeaves leaves = flatten(tree);
  for (TreeLeaf& leaf : leaves) leaf.tensor = Tensor();
  return unflatten(tree, leaves);
}

}  // namespace detail

/// Returns a function that computes `forward` and takes its gradient from `backward`.
///
/// forward: (arguments...) -> std::pair{result, residuals}, both trees.
/// backward: (residuals, cotangent of the result) -> a tuple with the cotangent of each argument,
/// trees of the arguments' types. With one argument, its cotangent may be returned without a tuple.
/// None{} stands for no cotangent of an argument that is one tensor.
///
/// Tensors captured by either function get no gradient. Higher-order gradients differentiate
/// backward, and the residuals as forward computed them. In eager mode backward runs when a
/// gradient is requested; in a trace it is recorded with the call.
///
/// Throws StructureError, ShapeError or DTypeError if backward returns a tree of another type; in
/// eager mode, from the gradient. Source: jax.custom_vjp.
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
                               const Tensors& saved, const Tensors& cotangents) {
      const Residuals r = unflatten(residuals_like, with_tensors(flatten(residuals_like), saved));
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

/// Fails to compile: names the functions that custom_vjp takes.
template <class Forward>
auto custom_vjp(Forward) {
  static_assert(std::is_void_v<Forward>,
                "custom_vjp(forward, backward) takes two functions: forward returns "
                "std::pair{result, residuals}; backward takes the residuals and the cotangent of "
                "the result, and returns a tuple with the cotangent of each argument");
  return [](const auto&...) { return Tensor(); };
}

}  // namespace reel
REEL_API_END
