// frontend/transforms/jvp.h — jvp and hvp: directional derivatives.
#pragma once

#include <utility>

#include "reel/core/base/visibility.h"
#include "reel/frontend/loops/while_loop.h"
#include "reel/frontend/transforms/grad.h"
#include "reel/frontend/tree/leaves.h"

REEL_API_BEGIN
namespace reel {

namespace detail {

/// Throws StructureError, DTypeError or ShapeError if the tangents do not have the types of the
/// primals. The message names all leaves that differ.
void check_tangents(const char* what, const TreeLeaves& primals, const PathsFn& primal_paths,
                    const TreeLeaves& tangents, const PathsFn& tangent_paths);
/// Returns the tangents of targets, given the tangents of sources and a tape that recorded how
/// targets depend on sources. An empty Tensor for a target that is not differentiable.
Tensors pushed_forward(RecordingTape& tape, const Tensors& sources, const Tensors& tangents,
                       const Tensors& targets);

template <class F, class X>
constexpr bool takes_primals() {
  constexpr bool kTakesPrimals =
      std::disjunction_v<std::is_invocable<F&, const X&>, TakesMembers<F, X>>;
  static_assert(kTakesPrimals,
                "jvp(f, primals, tangents) calls f with the primals; for several arguments, give "
                "tuples of primals and tangents");
  if constexpr (kTakesPrimals)
    return returns_tree<decltype(call_with_state(std::declval<F&>(), std::declval<const X&>()))>();
  else
    return false;
}

}  // namespace detail

/// Returns std::pair{f(primals), tangent}: the tangent is the change of f(primals) if primals
/// change by `tangents`. Both have the type that f returns.
///
/// primals: a tree; a tuple stands for several arguments of f. tangents: a tree of the same
/// structure and types; the values for integer and boolean leaves are ignored. Results that do not
/// depend on primals, and integer and boolean ones, have exact zeros as tangents. Works in eager
/// mode, in a trace, nested in itself, and inside grad. Throws StructureError, DTypeError or
/// ShapeError if the tangents have other types.
///
/// Cost: twice the gradient of f, since a jvp is the vjp of the vjp in its cotangent. A trace drops
/// the first of the two because its result is unused: about f and one gradient. A traced loop
/// computes its tangents beside its values, in one loop without residuals. If entries finish one by
/// one, there are two loops, and the first saves residuals for the second. Eager memory: as for a
/// gradient. Source: jax.jvp; Townsend (2017), "A new trick for calculating Jacobian vector
/// products".
template <class F, class X>
auto jvp(F&& f, const X& primals, const X& tangents) {
  if constexpr (!detail::takes_primals<std::remove_reference_t<F>, X>()) {
    return std::pair{primals, tangents};
  } else {
    const TreeLeaves given = flatten(tangents);
    detail::check_tangents(
        "jvp", flatten(primals), [&] { return leaf_paths(primals, "primals"); }, given,
        [&] { return leaf_paths(tangents, "primals"); });
    RecordingTape tape;
    const X x = detail::fresh_argument(primals);
    const Tensors sources = tensors_of(flatten(x));
    for (const Tensor& source : sources)
      if (source.is_defined()) tape.watch(source);
    auto value = detail::as_state(detail::call_with_state(f, x));
    tape.stop();
    auto tangent = Tape::from(
        detail::pushed_forward(tape, sources, tensors_of(given), tensors_of(flatten(value))),
        value);
    return std::pair{std::move(value), std::move(tangent)};
  }
}

template <class F, class X, class Tangents>
auto jvp(F&&, const X& primals, const Tangents&) {
  static_assert(std::is_same_v<X, Tangents>,
                "the tangents of jvp are a tree of the type of the primals");
  return std::pair{primals, primals};
}

/// Returns the Hessian of f at x, times v: a tree of the type of x.
///
/// f: returns a floating scalar, or std::pair{scalar, auxiliary}; v: a tree of the type of x, as
/// the tangents of jvp. Computed as the vjp of the gradient, which is less work than the jvp of the
/// gradient. Both agree because second derivatives are symmetric. If f contains a custom_vjp, its
/// second derivatives J may be asymmetric: hvp then returns v·J, and jvp(grad(f), x, v) returns
/// J·v. Throws StructureError, DTypeError or ShapeError if v has other types than x.
///
/// Cost: about 4 times the gradient of f. The Hessian itself is never computed.
/// Source: Pearlmutter (1994), "Fast exact multiplication by the Hessian".
template <class F, class X>
X hvp(F f, const X& x, const X& v) {
  detail::check_tangents(
      "hvp", flatten(x), [&] { return leaf_paths(x, "x"); }, flatten(v),
      [&] { return leaf_paths(v, "x"); });
  const auto gradient = [g = detail::grad_as("hvp", std::move(f))](const X& at) {
    return with_dense_tables(g(at));  // has the type of v
  };
  return vjp(gradient, x).second(v);
}

}  // namespace reel
REEL_API_END
