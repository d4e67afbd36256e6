// frontend/loops/scan.h — scan, a loop along a dim or until a condition ends each entry.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "reel/core/base/visibility.h"
#include "reel/frontend/loops/loop_leaves.h"
#include "reel/frontend/loops/while_loop.h"
#include "reel/frontend/tree/tree.h"

REEL_API_BEGIN
namespace reel {

/// The dims of the condition: {} for one scalar condition, {batch} for one per entry, or none
/// given.
class CondDims {
 public:
  CondDims() : dims_(Dims()) {}
  /// Returns the value for dims that are not given.
  static CondDims none() {
    CondDims result;
    result.dims_.reset();
    return result;
  }
  CondDims(std::initializer_list<Dim> dims) : dims_(Dims(dims)) {}
  CondDims(const Dims& dims) : dims_(dims) {}
  /// Returns the dims; nullopt if they are not given.
  const std::optional<Dims>& dims() const { return dims_; }

 private:
  std::optional<Dims> dims_;
};

/// The arguments of scan, by name. The template arguments are deduced.
template <class State = None, class Xs = None, class Ys = None, class Cond = None,
          class Body = None, class Arrays = std::false_type>
struct Scan {
  std::optional<Dim> spatial_dim{};       ///< a dim with a size; an undefined one, which names the
                                          ///< result's dim; or a plain size
  CondDims cond_dims = CondDims::none();  ///< the dims of the condition: an end for each entry
  bool cond_before_body = true;           ///< false: cond is not called on the initial state
  /// A tree; numbers in a tuple, a pair or alone become tensors. Or a function of the first slice
  /// of xs that returns it.
  State initial{};
  Xs xs{};      ///< a tree of tensors that have spatial_dim; each iteration takes a slice
  Ys ys{};      ///< a tree of the TensorType that y must have; optional
  Cond cond{};  ///< State -> booleans over cond_dims; cond(None, State) works too
  /// (x, State) -> std::pair{y, State}; only without xs (State); only without state (x) -> y. It
  /// may take the index of x first: (i, x, State), (i, State), (i, x).
  Body body{};
  std::optional<IterationCount>
      max_seq_len{};  ///< the largest number of iterations; a number, a scalar, or one per entry
  Arrays return_tensor_arrays{};  ///< std::true_type{}: ys are TensorArrays
  bool reverse = false;           ///< true: from the end of each entry to its beginning
  Checkpoint checkpoint{};        ///< selects the residuals that are saved
  SwapMemory swap_memory{};       ///< true: residuals may be spilled to a file
  std::int64_t truncate = 0;  ///< the number of iterations that gradients reach back; 0: all. Saves
                              ///< no memory by itself
  std::string name = "scan";  ///< named in errors
};

#if defined(__clang__) && __clang_major__ < 17
namespace detail {
template <class State>
struct DeducedByClang17 {
  static_assert(!std::is_same_v<State, State>,
                "clang before 17 cannot deduce the template arguments of Scan{...}: write "
                "Scan<State, Xs, Ys, Cond, decltype(body)>{...}, with None for each that is not "
                "given, or use clang 17 or GCC");
};
}  // namespace detail
Scan(...)->Scan<detail::DeducedByClang17<None>>;
#endif

/// The result of scan: auto [ys, state, dim] = scan(...).
template <class Ys, class State>
struct Scanned {
  Ys ys;        ///< the returned y of all iterations, stacked
  State state;  ///< the final state of each entry
  Dim dim;      ///< the first dim of ys
};

namespace detail {

template <class T>
inline constexpr bool is_none = std::is_same_v<T, None>;

struct NotInvocable {};
/// The body in a call without Other (a state, or xs). Not invocable if the scan has Other: a body
/// of one `auto` argument would compile, and take a state for x.
template <class Body, class Other>
using BodyWithout = std::conditional_t<is_none<Other>, const Body&, NotInvocable>;

/// The arguments with which scan calls the body.
enum class ScanBodyForm { none, x, x_and_state, state, index_x_state, index_x, index_state };

/// Returns the form of the body. Tests one form after the other: grad(f) takes any number of
/// arguments, and fails to compile for some.
template <class Body, class X, class State>
constexpr ScanBodyForm scan_body_form() {
  if constexpr (std::is_invocable_v<BodyWithout<Body, State>, const X&>)
    return ScanBodyForm::x;
  else if constexpr (std::is_invocable_v<const Body&, const X&, const State&>)
    return ScanBodyForm::x_and_state;
  else if constexpr (std::is_invocable_v<BodyWithout<Body, X>, const State&>)
    return ScanBodyForm::state;
  else if constexpr (std::is_invocable_v<const Body&, const Tensor&, const X&, const State&>)
    return ScanBodyForm::index_x_state;
  else if constexpr (std::is_invocable_v<BodyWithout<Body, State>, const Tensor&, const X&>)
    return ScanBodyForm::index_x;
  else if constexpr (std::is_invocable_v<BodyWithout<Body, X>, const Tensor&, const State&>)
    return ScanBodyForm::index_state;
  else
    return ScanBodyForm::none;
}
template <class Body, class X, class State>
constexpr bool takes_index() {
  return scan_body_form<Body, X, State>() >= ScanBodyForm::index_x_state;
}

/// Calls body(first..., state), and moves the state if the body takes it by value: the loop then
/// holds no reference to it. Body is const if the loop calls a const body, as scan does.
template <class Body, class State, class... First>
decltype(auto) call_with_last(Body& body, State& state, const First&... first) {
  if constexpr (std::is_invocable_v<Body&, const First&..., State>)
    return body(first..., std::move(state));
  else
    return body(first..., std::as_const(state));
}
/// Calls the body with the arguments of its form.
template <class Body, class X, class State>
decltype(auto) call_form(const Body& body, const Tensor& index, const X& x, State& state) {
  constexpr ScanBodyForm kForm = scan_body_form<Body, X, State>();
  if constexpr (kForm == ScanBodyForm::x)
    return body(x);
  else if constexpr (kForm == ScanBodyForm::x_and_state)
    return call_with_last(body, state, x);
  else if constexpr (kForm == ScanBodyForm::state)
    return call_with_last(body, state);
  else if constexpr (kForm == ScanBodyForm::index_x_state)
    return call_with_last(body, state, index, x);
  else if constexpr (kForm == ScanBodyForm::index_x)
    return body(index, x);
  else
    return call_with_last(body, state, index);
}

/// True if scan can call the body.
template <class Body, class X, class State>
constexpr bool is_scan_body() {
  constexpr bool kIsBody = scan_body_form<Body, X, State>() != ScanBodyForm::none;
  static_assert(kIsBody,
                "scan calls body(x, state), body(state) without xs, or body(x) without a state: "
                "with xs and a state the body takes both; it may take the index of x before them, "
                "a Tensor");
  if constexpr (kIsBody)
    return returns_tree<decltype(call_form(std::declval<const Body&>(), Tensor(),
                                           std::declval<const X&>(), std::declval<State&>()))>();
  else
    return false;
}

/// Returns the pair of y and the next state; None for each that the body does not return.
template <class Body, class X, class State>
auto call_scan_body(const Body& body, const Tensor& index, const X& x, State state) {
  if constexpr (is_none<State>) {
    auto y = call_form(body, index, x, state);
    if constexpr (IsInstance<std::decay_t<decltype(y)>, std::pair>::value) {
      if constexpr (is_none<std::decay_t<decltype(y.second)>>)
        return y;
      else
        return std::pair{y, None{}};
    } else {
      return std::pair{y, None{}};
    }
  } else {
    auto result = call_form(body, index, x, state);
    static_assert(IsInstance<std::decay_t<decltype(result)>, std::pair>::value,
                  "scan's body returns std::pair{y, state}; None{} stands for no y");
    return std::pair{result.first, as_state(result.second)};
  }
}

template <class Cond, class State>
LoopCondition call_scan_cond(const Cond& cond, const State& state) {
  if constexpr (std::is_invocable_v<const Cond&, const State&>) {
    return as_condition(std::decay_t<decltype(cond(state))>(cond(state)));
  } else {
    constexpr bool kTakesNone = std::is_invocable_v<const Cond&, const None&, const State&>;
    static_assert(kTakesNone,
                  "the cond of scan is called with the state alone, whose numbers have become "
                  "tensors, or with (None, state)");
    if constexpr (kTakesNone)
      return as_condition(std::decay_t<decltype(cond(None{}, state))>(cond(None{}, state)));
    else
      return {};
  }
}

/// The type of ys with return_tensor_arrays: TensorArrays in the place of tensors.
template <class Y>
struct ArraysOf {
  static_assert(is_none<Y>,
                "return_tensor_arrays maps y's leaves to TensorArrays: let body return a "
                "std::tuple instead of a struct");
  using type = None;
};
template <>
struct ArraysOf<Tensor> {
  using type = TensorArray;
};
template <class A, class B>
struct ArraysOf<std::pair<A, B>> {
  using type = std::pair<typename ArraysOf<A>::type, typename ArraysOf<B>::type>;
};
template <class... Ts>
struct ArraysOf<std::tuple<Ts...>> {
  using type = std::tuple<typename ArraysOf<Ts>::type...>;
};
template <class T, std::size_t N>
struct ArraysOf<std::array<T, N>> {
  using type = std::array<typename ArraysOf<T>::type, N>;
};
template <class T>
struct ArraysOf<std::vector<T>> {
  using type = std::vector<typename ArraysOf<T>::type>;
};
template <class T>
struct ArraysOf<std::map<std::string, T>> {
  using type = std::map<std::string, typename ArraysOf<T>::type>;
};

/// Returns an object of the mapped type with containers of the same sizes.
template <class Y>
typename ArraysOf<Y>::type arrays_like(const Y& y) {
  using Result = typename ArraysOf<Y>::type;
  if constexpr (TupleLike<Y>) {
    return std::apply([](const auto&... item) { return Result{arrays_like(item)...}; }, y);
  } else if constexpr (IsInstance<Y, std::map>::value) {
    Result result;
    for (const auto& [key, value] : y) result.emplace(key, arrays_like(value));
    return result;
  } else if constexpr (IsInstance<Y, std::vector>::value || IsArray<Y>::value) {
    Result result{};
    if constexpr (IsInstance<Y, std::vector>::value) result.resize(y.size());
    for (std::size_t i = 0; i < y.size(); ++i) result[i] = arrays_like(y[i]);
    return result;
  } else {
    return Result{};
  }
}

/// Collects the leaves of a template: TensorType, or nullopt for None; and their paths.
struct CollectTypes : TreePath {
  std::vector<std::optional<TensorType>> types;
  std::vector<std::string> paths;
  CollectTypes() : TreePath("y") {}
  template <class T>
  void visit(PartName name, const T& leaf) {
    static_assert(std::is_same_v<T, TensorType> || is_none<T>,
                  "ys is a tree of TensorType and None");
    const std::size_t outer = enter(name);
    if constexpr (is_none<T>)
      types.push_back(std::nullopt);
    else
      types.push_back(leaf);
    paths.push_back(path());
    leave(outer);
  }
  void size(std::size_t) {}
  void key(const std::string&) {}
};

/// True if `initial` is a function of the first slice. A tree that can be called, such as a layer,
/// is a state.
template <class Initial, class Xs>
inline constexpr bool kIsFirstStep =
    !is_none<Xs> && !std::is_aggregate_v<Initial> && !WithMembers<Initial> &&
    std::is_invocable_v<const Initial&, const Xs&>;

/// Returns the spec with another initial state.
template <class Initial, class State, class Xs, class Ys, class Cond, class Body, class Arrays>
Scan<Initial, Xs, Ys, Cond, Body, Arrays> with_initial(
    const Initial& initial, const Scan<State, Xs, Ys, Cond, Body, Arrays>& spec) {
  return {spec.spatial_dim,
          spec.cond_dims,
          spec.cond_before_body,
          initial,
          spec.xs,
          spec.ys,
          spec.cond,
          spec.body,
          spec.max_seq_len,
          spec.return_tensor_arrays,
          spec.reverse,
          spec.checkpoint,
          spec.swap_memory,
          spec.truncate,
          spec.name};
}

/// Returns the first slice of xs; in reverse, the last slice of each entry.
template <class Xs>
Xs initial_slice(const char* function, const std::string& name, const std::optional<Dim>& dim,
                 const Xs& xs, bool is_reverse) {
  ScanSpec leaves;
  leaves.function = function;
  leaves.name = name;
  leaves.spatial_dim = dim;
  leaves.xs = flatten(xs);
  leaves.xs_paths = paths_fn(TreeRef(xs), "xs");
  leaves.is_reverse = is_reverse;
  return unflatten(xs, initial_slice_leaves(leaves));
}

/// Returns the parts of a scan that do not call its functions. initial: must stay where it is.
template <class Spec, class S>
ScanSpec leaves_of_scan(const char* function, const Spec& spec, const S& initial) {
  ScanSpec leaves;
  leaves.function = function;
  leaves.name = spec.name;
  leaves.spatial_dim = spec.spatial_dim;
  leaves.cond_dims = spec.cond_dims.dims();
  leaves.cond_before_body = spec.cond_before_body;
  leaves.initial = flatten(initial);
  leaves.shape_invariants =
      invariants_for(std::string(function) + " \"" + spec.name + '"', TreeRef(initial), {});
  leaves.xs = flatten(spec.xs);
  leaves.state_paths = paths_fn(TreeRef(initial), "state");
  leaves.xs_paths = paths_fn(TreeRef(spec.xs), "xs");
  if constexpr (!is_none<std::decay_t<decltype(spec.ys)>>) {
    CollectTypes types;
    walk(types, spec.ys);
    leaves.ys_types = std::move(types.types);
    leaves.ys_paths = [paths = std::move(types.paths)] { return paths; };
  }
  leaves.max_seq_len = spec.max_seq_len;
  leaves.is_reverse = spec.reverse;
  leaves.checkpoint = spec.checkpoint;
  leaves.swap_memory = spec.swap_memory;
  leaves.truncate = spec.truncate;
  return leaves;
}

/// Runs a scan with a state as `initial`.
template <class State, class Xs, class Ys, class Cond, class Body, class Arrays>
auto scan_from(const char* function, const Scan<State, Xs, Ys, Cond, Body, Arrays>& spec) {
  using S = typename StateOf<State>::type;
  const S initial = as_state(spec.initial);
  if constexpr (!is_scan_body<Body, Xs, S>()) {
    return Scanned<Tensor, S>{Tensor(), initial, Dim(0)};
  } else {
    using Returned = decltype(call_scan_body(spec.body, Tensor(), spec.xs, initial));
    using Y = std::decay_t<typename Returned::first_type>;
    static_assert(std::is_same_v<std::decay_t<typename Returned::second_type>, S>,
                  "body returns a state of the type that it takes");

    std::optional<Y> first_y, last_y;  // hold the container sizes of y
    std::vector<std::string> returned_paths;
    ScanSpec leaves = leaves_of_scan(function, spec, initial);
    if constexpr (is_none<Y>) {
      leaves.has_ys = false;
      last_y.emplace();
    }
    leaves.first_y_paths = [&] { return leaf_paths(*first_y, "y"); };
    leaves.y_paths = [&] { return leaf_paths(*last_y, "y"); };
    if constexpr (!is_none<Cond>)
      leaves.cond = [&](const TreeLeaves& s) {
        return call_scan_cond(spec.cond, unflatten(initial, s));
      };
    const auto body = [&](const Tensor& index, const TreeLeaves& x, TreeLeaves s) {
      auto [y, next] =
          call_scan_body(spec.body, index, unflatten(spec.xs, x), unflatten(initial, std::move(s)));
      last_y = y;
      if (!first_y) first_y = y;
      return ScanStep{flatten(y), flatten_returned(TreeRef(next), leaves.initial, returned_paths)};
    };
    if constexpr (takes_index<Body, Xs, S>())
      leaves.indexed_body = body;
    else
      leaves.body = [&](const TreeLeaves& x, TreeLeaves s) { return body({}, x, std::move(s)); };
    leaves.returned_paths = [&] { return returned_paths; };
    leaves.return_tensor_arrays = Arrays::value;
    const ScanResult result = scan_leaves(leaves);
    if constexpr (Arrays::value) {
      auto arrays = unflatten(arrays_like(*last_y), result.ys);
      return Scanned<decltype(arrays), S>{std::move(arrays), unflatten(initial, result.state),
                                          result.dim};
    } else {
      return Scanned<Y, S>{unflatten(*last_y, result.ys), unflatten(initial, result.state),
                           result.dim};
    }
  }
}

/// Runs scan(spec). Errors name `function`.
template <class State, class Xs, class Ys, class Cond, class Body, class Arrays>
auto scan_as(const char* function, const Scan<State, Xs, Ys, Cond, Body, Arrays>& spec) {
  static_assert(!is_none<Body>, "scan needs a body");
  if constexpr (kIsFirstStep<State, Xs>) {
    const Xs first = initial_slice(function, spec.name, spec.spatial_dim, spec.xs, spec.reverse);
    return scan_as(function, with_initial(spec.initial(first), spec));
  } else {
    return scan_from(function, spec);
  }
}

}  // namespace detail

/// Calls body for every slice of xs along spatial_dim, passes the state from call to call, and
/// stacks the returned y.
///
/// body: (x: xs without spatial_dim, s: State) -> (y, State)
///   -> {ys: y with the scanned dim in front, final state of each entry, dim of ys}.
///
/// Ends of entries: along a ragged dim each entry runs for its own length. With reverse, iteration
/// k takes element length - 1 - k of each entry; xs and y without the entries' dims get these dims.
/// With reverse and cond or max_seq_len, an entry that ends after k iterations has ys of its last k
/// elements; they lie along the new dim from 0 on, in the order of x.
/// If lengths of a ragged dim run over the scanned dim, its slices have their own lengths. With
/// cond an entry finishes when cond is false for it, or at max_seq_len.
///
/// Index: a body that takes it gets the position of x along the scanned dim, an i32 scalar; along a
/// ragged dim in reverse, one for each entry. Without a dim it is the number of the iteration.
///
/// Memory of the state: if the body takes the state by value, it holds the only reference from the
/// second iteration on, also in eager mode: set_at(std::move(h), i, x, axis) then writes in place.
/// In the first iteration the caller holds `initial`. Further references: ys and other leaves of
/// the state with the same tensor, a loop under a tape, a loop with entries that have finished.
///
/// First step: if `initial` is a function, it is called once with the first slice of xs, and
/// returns the state that the first iteration takes. With reverse this is the last slice of each
/// entry. An entry without elements has a first slice of zeros.
///
/// Finished entries: ys are exact zeros, the state keeps its last value, and no gradient flows,
/// whatever values the padding has. A state leaf without the entries' dims is shared: it runs while
/// any entry does. A Dim in the state may change as in while_loop. If the Dim has lengths over the
/// entries, each finished entry keeps its own length. If it has one size, the size changes for all
/// entries while any entry runs, and tensors with that Dim keep running too: beyond an entry's end
/// they are computed from its padding.
///
/// Dims of ys: a named dim of y may have another size in every iteration, such as the dim of a
/// growing state, or of packed elements. The stack then has a ragged dim with lengths over the
/// scanned dim, and over the dims of the lengths in one iteration; a finished entry has length 0.
/// The dim is made from lengths, as in Dim("place", n). With return_tensor_arrays each element
/// keeps its own dims; in a trace, elements have one type. Plain tensors are scanned along their
/// first axis, and their ys have equal sizes. With cond or max_seq_len the result has a new dim.
///
/// truncate = k: the state that enters iterations k, 2k, 3k, ... is a constant to gradients
/// (truncated backpropagation through time, Williams & Peng 1990). Every segment of k iterations
/// then has the gradient that it would have alone, given its initial state. With reverse, an entry
/// that is shorter than others counts from its own end. Values do not change; if k is at least the
/// trip count, gradients do not either. truncate saves no memory by itself: add `checkpoint`, or
/// read the sequence in windows (sequence.h).
///
/// Memory: reverse mode saves the residuals of each iteration, or those that `checkpoint` and
/// `swap_memory` select. With either option, an eager tape records body as a trace does, once per
/// call of scan, and body must not read values. If an eager loop without these options calls such a
/// scan, the scan is recorded in each iteration.
/// Throws StructureError, ShapeError or DTypeError if body returns a state of another type;
/// ArgumentError if arguments do not fit together. Source: RETURNN's scan; Griewank & Walther
/// (2008), ch. 12.
template <class State, class Xs, class Ys, class Cond, class Body, class Arrays>
auto scan(const Scan<State, Xs, Ys, Cond, Body, Arrays>& spec) {
  return detail::scan_as("scan", spec);
}

}  // namespace reel
REEL_API_END
