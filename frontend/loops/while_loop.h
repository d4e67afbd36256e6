// frontend/loops/while_loop.h — while_loop and cond, control flow on tensors.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/frontend/loops/loop_leaves.h"
#include "reel/frontend/loops/state/sparse_invariants.h"
#include "reel/frontend/tree/tree.h"

REEL_API_BEGIN
namespace reel {

/// The options of tf.while_loop, and options of the gradient's memory. The members have the order
/// of Scan's.
struct WhileOptions {
  /// One entry per tensor of the state, in path order; for a TensorArray, the shape of its
  /// elements. std::nullopt stands for the shape of the initial value.
  ///
  /// The initial value and the state that body returns must be at least as specific as the
  /// invariant: of the same rank, and equal to every size that it names. In eager mode the sizes of
  /// every iteration are checked. In a trace, cond, body and the code after the loop know only the
  /// invariant; it is an error if body returns a less specific size, which ensure_shape can fix.
  /// PartialShape::unknown_rank() allows every shape. If body changes the rank, a trace knows none:
  /// only ensure_shape, print, stack, cond and while_loop take such a value, or it is returned.
  /// Other functions throw TraceError for it.
  ///
  /// An IndexedSlices has one entry, the invariant of its values; the first size also applies to
  /// its indices. A SparseTensor has one entry, the invariant of its dense_shape: {2} for matrices.
  /// Its number of elements may always change.
  std::vector<std::optional<PartialShape>> shape_invariants = {};
  /// At least 1. Used by Executor::dataflow only; the other executors run one iteration at a time.
  /// Never changes a result.
  int parallel_iterations = 10;
  bool back_prop = true;        ///< false: no gradient flows through the loop
  Checkpoint checkpoint = {};   ///< selects the residuals that are saved, as for scan
  SwapMemory swap_memory = {};  ///< true: residuals may be spilled to a file
  std::optional<IterationCount> maximum_iterations = {};  ///< the bound is checked before cond
  std::string name = "while";                             ///< named in errors
};

namespace detail {

template <class Fn, class State>
struct TakesMembers : std::false_type {};
template <class Fn, class... Ts>
struct TakesMembers<Fn, std::tuple<Ts...>> : std::is_invocable<Fn&, const Ts&...> {};
template <class Fn, class A, class B>
struct TakesMembers<Fn, std::pair<A, B>> : std::is_invocable<Fn&, const A&, const B&> {};
/// True if fn may be called with the members of a state that are moved.
template <class Fn, class State>
struct TakesMovedMembers : std::false_type {};
template <class Fn, class... Ts>
struct TakesMovedMembers<Fn, std::tuple<Ts...>> : std::is_invocable<Fn&, Ts...> {};
template <class Fn, class A, class B>
struct TakesMovedMembers<Fn, std::pair<A, B>> : std::is_invocable<Fn&, A, B> {};

/// Calls fn with the state, or with the members of a tuple or pair as arguments if fn takes those.
template <class Fn, class State>
decltype(auto) call_with_state(Fn& fn, const State& state) {
  if constexpr (std::is_invocable_v<Fn&, const State&>) {
    return fn(state);
  } else {
    return std::apply(fn, state);
  }
}
/// Moves the state, or its members, into fn if fn takes those by value: the loop then holds no
/// reference to them.
template <class Fn, class State>
decltype(auto) call_with_own_state(Fn& fn, State state) {
  if constexpr (std::is_invocable_v<Fn&, const State&>) {
    if constexpr (std::is_invocable_v<Fn&, State>)
      return fn(std::move(state));
    else
      return fn(std::as_const(state));
  } else if constexpr (TakesMovedMembers<Fn, State>::value) {
    return std::apply(fn, std::move(state));
  } else {
    return std::apply(fn, std::as_const(state));
  }
}

/// True if call_with_state may call Fn, and Fn returns something.
template <class Fn, class State>
constexpr bool is_loop_function() {
  // Lazily: a generic function may fail to compile for other arguments.
  constexpr bool kTakesState =
      std::disjunction_v<std::is_invocable<Fn&, const State&>, TakesMembers<Fn, State>>;
  static_assert(kTakesState,
                "cond and body are called with the state, or with the members of a tuple or pair "
                "as arguments; numbers in it have become tensors");
  if constexpr (kTakesState)
    return returns_tree<decltype(call_with_state(std::declval<Fn&>(),
                                                 std::declval<const State&>()))>();
  else
    return false;
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
  if constexpr (kAreBranches)
    return returns_tree<std::invoke_result_t<OnTrue, Args...>>() &&
           returns_tree<std::invoke_result_t<OnFalse, Args...>>();
  else
    return false;
}

}  // namespace detail

/// Runs body while cond holds: while (cond(s)) s = body(s). Returns the last state.
///
/// cond: State -> bool, or a boolean scalar. body: State -> State, with every leaf of the type it
/// had. initial: a tree with at least one tensor; numbers in a tuple, a pair or alone become
/// tensors. Runs at most maximum_iterations iterations; this bound is checked before cond.
///
/// A named Dim in the state may change in every iteration, for example {h: [batch, hist], hist} for
/// a growing history. The new Dim has one size, or lengths over the same dims as before. Tensors of
/// the state that had the old Dim must return with the new one. Each such Dim is one leaf of the
/// state.
///
/// In eager mode this is a C++ loop. In a trace, cond and body are called once each (once more if a
/// Dim of the state turns out to change) and become one node. The gradient of n iterations is a
/// loop of n iterations.
///
/// A body that takes the state, or its members, by value holds the only reference from the second
/// iteration on, with the exceptions that scan has.
///
/// Memory: reverse mode saves the residuals of each iteration, or those that `checkpoint` and
/// `swap_memory` select. With either option, an eager tape records cond and body as a trace does,
/// once per call of while_loop, and they must not read values. If an eager loop without these
/// options calls such a while_loop, the latter is recorded in each iteration.
/// Throws StructureError, DTypeError or ShapeError if body returns a state of another type;
/// DTypeError or ShapeError if cond is no boolean scalar; ArgumentError for options. Source:
/// tf.while_loop; RETURNN's while_loop for Dims.
template <class Cond, class Body, class Initial>
typename detail::StateOf<Initial>::type while_loop(Cond&& cond, Body&& body, const Initial& initial,
                                                   const WhileOptions& options = {}) {
  using State = typename detail::StateOf<Initial>::type;
  const State start = detail::as_state(initial);
  if constexpr (!detail::is_loop_function<Cond, State>() ||
                !detail::is_loop_function<Body, State>()) {
    return start;
  } else {
    WhileSpec spec;
    spec.name = options.name;
    spec.cond = [&](const TreeLeaves& s) {
      return detail::as_condition(detail::call_with_state(cond, unflatten(start, s)));
    };
    std::vector<std::string> returned_paths;
    spec.body = [&](TreeLeaves s) {
      return detail::flatten_returned(detail::TreeRef(detail::as_state(detail::call_with_own_state(
                                          body, unflatten(start, std::move(s))))),
                                      spec.initial, returned_paths);
    };
    using Returned = std::decay_t<decltype(detail::as_state(detail::call_with_state(body, start)))>;
    static_assert(std::is_same_v<Returned, State>,
                  "body returns a state of the type that it takes");
    spec.initial = flatten(start);
    spec.paths = detail::paths_fn(detail::TreeRef(start), "state");
    spec.returned_paths = [&] { return returned_paths; };
    spec.shape_invariants = detail::invariants_for(
        "while_loop \"" + options.name + '"', detail::TreeRef(start), options.shape_invariants);
    spec.parallel_iterations = options.parallel_iterations;
    spec.back_prop = options.back_prop;
    spec.checkpoint = options.checkpoint;
    spec.swap_memory = options.swap_memory;
    spec.maximum_iterations = options.maximum_iterations;
    return unflatten(start, while_loop_leaves(spec));
  }
}

namespace detail {
/// Returns cond(...). Errors have the names.
template <class Pred, class OnTrue, class OnFalse>
auto cond_as(const BranchNames& names, const Pred& pred, OnTrue&& on_true, OnFalse&& on_false) {
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
    std::optional<Result> if_true, if_false;  // hold the container sizes
    const auto leaves_of = [](auto& branch, std::optional<Result>& returned) {
      return [&] {
        returned = detail::as_state(branch());
        return flatten(detail::with_any_length(*returned));
      };
    };
    const TreeLeaves leaves = cond_leaves(
        detail::as_condition(pred), leaves_of(on_true, if_true), leaves_of(on_false, if_false),
        [&] { return leaf_paths(*if_true, "result"); },
        [&] { return leaf_paths(*if_false, "result"); }, names);
    return unflatten(if_true ? *if_true : *if_false, leaves);
  }
}
}  // namespace detail

/// Runs on_true if pred holds, otherwise on_false, and returns the result.
///
/// pred: bool, or a boolean scalar. With a predicate for each entry of a dim, call cond in a
/// function of one entry, under vmap along the dim. Both functions must return trees of the same
/// structure and types. In eager mode only the branch taken is called; in a trace both are recorded
/// and one runs. Tensors that only the other branch reads have exact zeros as gradients.
///
/// Named dims of the results may differ if each branch makes its own, or if the tree has the Dim as
/// a leaf: the result then has the Dim of the branch taken, a new one in a trace. The number of
/// elements of a SparseTensor may differ too; in a trace it is then unknown.
///
/// Throws DTypeError or ShapeError if pred is no boolean scalar. In a trace, which records both
/// branches, throws StructureError, DTypeError or ShapeError if their types differ.
template <class Pred, class OnTrue, class OnFalse>
auto cond(const Pred& pred, OnTrue&& on_true, OnFalse&& on_false) {
  return detail::cond_as({}, pred, on_true, on_false);
}

/// Runs on_true(args...) if pred holds, otherwise on_false(args...). Otherwise as cond without
/// arguments. Source: jax.lax.cond.
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
REEL_API_END
