// frontend/transforms/custom_jvp.h — custom_jvp, a function with a user-defined tangent.
#pragma once

#include <tuple>
#include <utility>

#include "reel/core/base/visibility.h"
#include "reel/frontend/transforms/custom_vjp.h"
#include "reel/frontend/transforms/grad.h"

REEL_API_BEGIN
namespace reel {

/// Returns a function that computes f and takes its derivatives from `tangent`.
///
/// f: (arguments...) -> a tree. tangent: (primals, tangents) -> the tangent of the result, a tree
/// of its type; primals and tangents are tuples of the arguments' types. It must be linear in the
/// tangents. Gradients transpose it, so forward and reverse mode agree, in any order.
///
///   auto f = custom_jvp([](const Tensor& x) { return abs(x); },
///                       [](const auto& x, const auto& t) -> Tensor {
///                         return std::get<0>(t) * tanh(std::get<0>(x) * 10.0);
///                       });
///
/// Tensors captured by either function get no gradient. Throws StructureError, ShapeError or
/// DTypeError if the tangent has another type than the result, in eager mode from the gradient.
/// Source: jax.custom_jvp.
template <class F, class Tangent>
auto custom_jvp(F f, Tangent tangent) {
  return [f = std::move(f), tangent = std::move(tangent)](const auto&... arguments) {
    using Arguments = std::tuple<std::decay_t<decltype(arguments)>...>;
    using Result = std::decay_t<decltype(f(arguments...))>;
    static_assert(
        std::is_invocable_v<const Tangent&, const Arguments&, const Arguments&>,
        "the second function of custom_jvp is called with (primals, tangents), two tuples "
        "of the arguments");
    const auto forward = [&f](const auto&... inside) {
      return std::pair{Result(f(inside...)), Arguments(inside...)};
    };
    const auto backward = [tangent](const Arguments& primals, const Result& cotangent) {
      const TreeLeaves leaves = flatten(primals);
      Tensors zeros = tensors_of(leaves);
      for (Tensor& zero : zeros) zero = zero_gradient(zero);
      const Arguments at = unflatten(primals, with_tensors(leaves, zeros));
      const auto push = [&](const Arguments& tangents) {
        return Result(tangent(primals, tangents));
      };
      const auto [pushed, pull] = vjp(push, at);
      const TreeLeaves tangents = flatten(pushed);
      detail::check_custom_tangents(
          tangents, [&of = pushed] { return leaf_paths(of, "result"); }, flatten(cotangent),
          [&] { return leaf_paths(cotangent, "result"); });
      return pull(cotangent);
    };
    return custom_vjp(forward, backward)(arguments...);
  };
}

}  // namespace reel
REEL_API_END
