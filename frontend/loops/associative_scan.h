// frontend/loops/associative_scan.h — associative_scan, all partial results of an associative
// function.
#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/dims/axis.h"
#include "reel/frontend/tree/leaves.h"
#include "reel/frontend/tree/tree.h"

REEL_API_BEGIN
namespace reel {

/// Options of associative_scan: associative_scan(op, xs, time, {.reverse = true}).
struct AssociativeScan {
  bool reverse = false;  ///< from the last element to the first
};

namespace detail {

struct AssociativeScanSpec {
  TreeLeaves xs;
  PathsFn paths, returned_paths;
  Axis time;
  bool reverse;
  std::function<TreeLeaves(const TreeLeaves& a, const TreeLeaves& b)> op;
};
TreeLeaves associative_scan_leaves(const AssociativeScanSpec& spec);

template <class Op, class Xs>
constexpr bool is_associative_op() {
  constexpr bool kTakesTwo = std::is_invocable_v<Op, const Xs&, const Xs&>;
  static_assert(kTakesTwo,
                "the function given to associative_scan is called with two trees of the type of "
                "xs, which hold several elements each");
  if constexpr (kTakesTwo) {
    if constexpr (returns_tree<std::invoke_result_t<Op, const Xs&, const Xs&>>()) {
      constexpr bool kReturnsXs =
          std::is_same_v<std::decay_t<std::invoke_result_t<Op, const Xs&, const Xs&>>, Xs>;
      static_assert(kReturnsXs,
                    "the function given to associative_scan returns a tree of the type of xs");
      return kReturnsXs;
    }
  }
  return false;
}

}  // namespace detail

/// Returns all partial results of an associative function along an axis: x_0, op(x_0, x_1),
/// op(op(x_0, x_1), x_2), ... With .reverse: x_n, op(x_n, x_{n-1}), ..., at their elements.
///
/// xs: a tree of tensors with the axis. op: (Xs, Xs) -> Xs combines elements: it is called with
/// slices of xs in which the axis is shorter, of one new Dim for both, and returns a tree of their
/// types. op must be associative, and treat elements along the axis each on its own. The order of
/// combining elements is unspecified, but depends on their number only.
///
/// Along a ragged dim each entry runs within its own length, and padding of the result is 0.
/// Gradients of any order. In a trace that does not know the number of elements, the rounds are a
/// loop; a plain axis must have a known size there.
///
/// Cost: ⌈log2 n⌉ calls of op, for at most n elements each. A linear recurrence is faster as
/// linear_scan. Throws StructureError, DTypeError or ShapeError if op returns other types, if xs
/// have no such axis, or if lengths of another dim run over it; ArgumentError if xs hold no tensor.
/// Source: jax.lax.associative_scan; Hillis and Steele (1986), "Data parallel algorithms".
template <class Op, class Xs>
Xs associative_scan(Op&& op, const Xs& xs, const Axis& time, const AssociativeScan& options = {}) {
  if constexpr (!detail::is_associative_op<Op&, Xs>()) {
    return xs;
  } else {
    std::vector<std::string> returned_paths;
    const auto on_leaves = [&](const TreeLeaves& a, const TreeLeaves& b) {
      const Xs returned = op(unflatten(xs, a), unflatten(xs, b));
      TreeLeaves leaves = flatten(returned);
      returned_paths = leaf_paths(returned, "xs");
      return leaves;
    };
    return unflatten(xs, detail::associative_scan_leaves(
                             {flatten(xs), [&] { return leaf_paths(xs, "xs"); },
                              [&] { return returned_paths; }, time, options.reverse, on_leaves}));
  }
}

}  // namespace reel
REEL_API_END
