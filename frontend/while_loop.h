// frontend/while_loop.h — while_loop and cond: control flow on tensors.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "reel/frontend/loop_leaves.h"
#include "reel/frontend/sparse_invariants.h"
#include "reel/frontend/tree.h"

namespace reel {

/// The options of tf.while_loop, and what is kept for the gradient, in the order of Scan.
struct WhileOptions {
  /// One entry per tensor of the state, in path order; std::nullopt stands for the shape of the
  /// initial value; of a TensorArray it is the shape of its elements. What goes in and what body
  /// returns must be at least as specific: of the same rank, and equal wherever the invariant says
  /// something. Eagerly every iteration's sizes are compared. While tracing, the invariant is all
  /// that is known in cond, in body and behind the loop; a size of which body knows less is an
  /// error too, until ensure_shape says it. PartialShape::unknown_rank() allows every shape
  /// eagerly, and every size of the initial value's rank in a trace. An IndexedSlices counts once:
  /// its invariant is that of its values, the first size that of its indices, too. So does a
  /// SparseTensor: its invariant is that of its dense_shape, {2} for matrices; how many elements it
  /// has may change, by default too.
  std::vector<std::optional<PartialShape>> shape_invariants = {};
  /// At least 1; never changes a result. Only Executor::dataflow looks at it, the others run one
  /// iteration after the other.
  int parallel_iterations = 10;
  bool back_prop = true;        ///< false: no gradient goes through the loop
  Checkpoint checkpoint = {};   ///< what is kept for the gradient, as of scan
  SwapMemory swap_memory = {};  ///< true: may be kept in a file
  std::optional<IterationCount> maximum_iterations = {};
  std::string name = "while";
};

namespace detail {

template <class Fn, class State>
struct TakesMembers : std::false_type {};
template <class Fn, class... Ts>
struct TakesMembers<Fn, std::tuple<Ts...>> : std::is_invocable<Fn&, const Ts&...> {};
template <class Fn, class A, class B>
struct TakesMembers<Fn, std::pair<A, B>> : std::is_invocable<Fn&, const A&, const B&> {};

/// Calls fn with a state, taken apart into arguments where it is a tuple and fn wants that.
template <class Fn, class State>
decltype(auto) call_with_state(Fn& fn, const State& state) {
  if constexpr (std::is_invocable_v<Fn&, const State&>) {
    return fn(state);
  } else {
    static_assert(TakesMembers<Fn, State>::value,
                  "cond and body are called with the state, or with the members of a tuple or pair "
                  "as arguments; numbers in it have become tensors");
    return std::apply(fn, state);
  }
}

template <class C>
LoopCondition as_condition(const C& value) {
  static_assert(std::is_same_v<C, bool> || std::is_same_v<C, Tensor>,
                "cond returns bool, or a boolean scalar Tensor");
  if constexpr (std::is_same_v<C, bool>)
    return {value, {}};
  else
    return {std::nullopt, value};
}

template <class OnTrue, class OnFalse, class... Args>
constexpr bool are_branches() {
  constexpr bool kAreBranches =
      std::is_invocable_v<OnTrue, Args...> && std::is_invocable_v<OnFalse, Args...>;
  static_assert(kAreBranches,
                "both branches of cond are called with the arguments behind them, cond(pred, f, g, "
                "args...), or with none");
  return kAreBranches;
}

}  // namespace detail

/// Runs body on a state for as long as cond holds: while (cond(s)) s = body(s).
///
/// cond: State -> bool, or a boolean scalar; body: State -> State, with every leaf of the type it
/// had; initial: a tree with at least one tensor (numbers in a tuple, a pair or alone become
/// tensors) -> the state for which cond did not hold, or that maximum_iterations bodies gave; the
/// bound is asked first. A named Dim in the state may come back as another one, longer or shorter,
/// with one size or with lengths over the dims that it had lengths over: tensors of the state that
/// had the old one have the new one then, as in {h: [batch, hist], hist} where a history grows.
/// Each such Dim is one leaf of the state. Eagerly a C++ loop; traced, cond and body are called
/// once each (once more if a Dim of the state turns out to change) and become one node. The
/// gradient of n iterations is a loop of n iterations. Throws StructureError, DTypeError or
/// ShapeError when body returns another state than it took, DTypeError or ShapeError when cond is
/// no boolean scalar, ArgumentError for options. Memory: reverse mode keeps what body's gradient
/// reads, per iteration, or what `checkpoint` and `swap_memory` say; under a tape of eager mode
/// cond and body are then recorded as in a trace, at each call of while_loop (one inside of a loop
/// of eager mode without either: in each of its steps), and must not read values. Source:
/// tf.while_loop; RETURNN's while_loop for Dims.
template <class Cond, class Body, class Initial>
typename detail::StateOf<Initial>::type while_loop(Cond&& cond, Body&& body, const Initial& initial,
                                                   const WhileOptions& options = {}) {
  using State = typename detail::StateOf<Initial>::type;
  const State start = detail::as_state(initial);
  WhileSpec spec;
  spec.name = options.name;
  spec.cond = [&](const TreeLeaves& s) {
    return detail::as_condition(detail::call_with_state(cond, unflatten(start, s)));
  };
  std::vector<std::string> returned_paths;
  spec.body = [&](const TreeLeaves& s) {
    return detail::flatten_returned(
        detail::as_state(detail::call_with_state(body, unflatten(start, s))), spec.initial,
        returned_paths);
  };
  using Returned = std::decay_t<decltype(detail::as_state(detail::call_with_state(body, start)))>;
  static_assert(std::is_same_v<Returned, State>, "body returns a state of the type that it takes");
  spec.initial = flatten(start);
  spec.paths = [&] { return leaf_paths(start, "state"); };
  spec.returned_paths = [&] { return returned_paths; };
  spec.shape_invariants = detail::invariants_for(str("while_loop \"", options.name, '"'), start,
                                                 options.shape_invariants);
  spec.parallel_iterations = options.parallel_iterations;
  spec.back_prop = options.back_prop;
  spec.checkpoint = options.checkpoint;
  spec.swap_memory = options.swap_memory;
  spec.maximum_iterations = options.maximum_iterations;
  return unflatten(start, while_loop_leaves(spec));
}

/// Runs one of two functions: on_true if pred holds, else on_false.
///
/// pred: bool, or a boolean scalar; both return the same tree -> that tree. Eagerly only the branch
/// taken is called; traced, both are recorded and one runs. The gradient of what the other one
/// reads is exact zeros. Named dims of the branches may differ where each branch makes its own, or
/// where the tree has the Dim as a leaf: the result then has the Dim of the branch taken, a new one
/// in a trace; so may the number of elements of a SparseTensor, which a trace does not know then.
/// Throws DTypeError or ShapeError when pred is no boolean scalar, and (traced, where both can be
/// seen) StructureError, DTypeError or ShapeError when the branches' types differ.
template <class Pred, class OnTrue, class OnFalse>
auto cond(const Pred& pred, OnTrue&& on_true, OnFalse&& on_false) {
  static_assert(std::is_same_v<Pred, bool> || std::is_same_v<Pred, Tensor>,
                "pred is bool, or a boolean scalar Tensor");
  if constexpr (!detail::are_branches<OnTrue&, OnFalse&>()) {
    return Tensor();
  } else {
    using Result = typename detail::StateOf<std::decay_t<std::invoke_result_t<OnTrue&>>>::type;
    static_assert(
        std::is_same_v<
            Result, typename detail::StateOf<std::decay_t<std::invoke_result_t<OnFalse&>>>::type>,
        "both branches return the same type");
    std::optional<Result> if_true, if_false;  // what the branches return says how containers look
    const auto leaves_of = [](auto& branch, std::optional<Result>& returned) {
      return [&] {
        returned = detail::as_state(branch());
        return flatten(detail::with_any_length(*returned));
      };
    };
    const TreeLeaves leaves = cond_leaves(
        detail::as_condition(pred), leaves_of(on_true, if_true), leaves_of(on_false, if_false),
        [&] { return leaf_paths(*if_true, "result"); },
        [&] { return leaf_paths(*if_false, "result"); });
    return unflatten(if_true ? *if_true : *if_false, leaves);
  }
}

/// The same, with branches that take arguments: on_true(args...) or on_false(args...). Source:
/// jax.lax.cond.
template <class Pred, class OnTrue, class OnFalse, class Arg, class... Args>
auto cond(const Pred& pred, OnTrue&& on_true, OnFalse&& on_false, const Arg& arg,
          const Args&... args) {
  if constexpr (!detail::are_branches<OnTrue&, OnFalse&, const Arg&, const Args&...>())
    return Tensor();
  else
    return cond(
        pred, [&] { return on_true(arg, args...); }, [&] { return on_false(arg, args...); });
}

}  // namespace reel
