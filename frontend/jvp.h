// frontend/jvp.h — jvp and hvp: derivatives in one direction.
#pragma once

#include <utility>

#include "reel/frontend/grad.h"
#include "reel/frontend/leaves.h"
#include "reel/frontend/while_loop.h"

namespace reel {

namespace detail {

/// Throws StructureError, DTypeError or ShapeError where tangents are not of the primals' types,
/// naming all that differ.
void check_tangents(const char* what, const TreeLeaves& primals, const PathsFn& primal_paths,
                    const TreeLeaves& tangents, const PathsFn& tangent_paths);
/// The tangents of targets, given those of sources and the tape that recorded the way from these to
/// those; an empty Tensor where there is no path.
Tensors pushed_forward(RecordingTape& tape, const Tensors& sources, const Tensors& tangents,
                       const Tensors& targets);

}  // namespace detail

/// f(primals), and by how much it changes when primals change by `tangents`: std::pair{value,
/// tangent}, both of the type that f returns.
///
/// primals: a tree, which a tuple may be of f's arguments; tangents: a tree of the same structure
/// and types, where those of integers and booleans do not matter. What does not depend on primals
/// has exact zeros as tangent, integers and booleans too. Works in eager mode, in a trace, inside
/// itself and inside grad. Throws StructureError, DTypeError or ShapeError for tangents of other
/// types.
/// Cost: the gradient of f twice, since a jvp is the vjp of the vjp in its cotangent. In a trace
/// nobody reads the first of both, which is left out: about f and one gradient; and a loop computes
/// its tangent beside its value, in one loop that saves nothing (two, the first of which saves what
/// the second reads, where entries end one by one). Eagerly, memory as for a gradient.
/// Source: jax.jvp; Townsend (2017), "A new trick for calculating Jacobian vector products".
template <class F, class X>
auto jvp(F&& f, const X& primals, const X& tangents) {
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
      detail::pushed_forward(tape, sources, tensors_of(given), tensors_of(flatten(value))), value);
  return std::pair{std::move(value), std::move(tangent)};
}

/// The Hessian of f at x times v.
///
/// f: returns a floating scalar, or std::pair{scalar, auxiliary}; v: a tree of the type of x, as
/// the tangents of jvp -> a tree of the type of x. The gradient of f is reversed: that is less work
/// than jvp of grad, and the same, as second derivatives are symmetric (those of a custom_vjp need
/// not be; jvp(grad(f), x, v) is then their Jacobian times v, this one v times their Jacobian).
/// Cost: about 4 times that of f's gradient; the Hessian is never made. Source: Pearlmutter (1994),
/// "Fast exact multiplication by the Hessian".
template <class F, class X>
X hvp(F f, const X& x, const X& v) {
  detail::check_tangents(
      "hvp", flatten(x), [&] { return leaf_paths(x, "x"); }, flatten(v),
      [&] { return leaf_paths(v, "x"); });
  const auto gradient = [g = detail::grad_as("hvp", std::move(f))](const X& x) {
    return with_dense_tables(g(x));  // of the type of v
  };
  return vjp(gradient, x).second(v);
}

}  // namespace reel
