// frontend/scan.h — scan: a loop along a dim, or until a condition ends it, entry by entry.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "reel/frontend/loop_leaves.h"
#include "reel/frontend/tree.h"
#include "reel/frontend/while_loop.h"

namespace reel {

/// The dims of what cond returns: {} for one scalar condition, {batch}, or none given.
class CondDims {
 public:
  CondDims() : dims_(Dims()) {}
  static CondDims none() {
    CondDims result;
    result.dims_.reset();
    return result;
  }
  CondDims(std::initializer_list<Dim> dims) : dims_(Dims(dims)) {}
  CondDims(const Dims& dims) : dims_(dims) {}
  const std::optional<Dims>& dims() const { return dims_; }

 private:
  std::optional<Dims> dims_;
};

/// The arguments of scan, by name. Types follow from what is given.
template <class State = None, class Xs = None, class Ys = None, class Cond = None,
          class Body = None, class Arrays = std::false_type>
struct Scan {
  std::optional<Dim>
      spatial_dim{};  ///< with a size; or undefined, a name for what comes out; or a plain size
  CondDims cond_dims = CondDims::none();
  bool cond_before_body = true;  ///< false: cond is not asked of the initial state
  State initial{};               ///< a tree; numbers in a tuple, a pair or alone become tensors
  Xs xs{};      ///< a tree of tensors that have spatial_dim, each iteration takes a slice
  Ys ys{};      ///< a tree of TensorType that y must have; may be left out
  Cond cond{};  ///< State -> booleans over cond_dims; cond(None, State) is taken too
  Body body{};  ///< (x, State) -> std::pair{y, State}; without xs (State), without state (x) -> y
  std::optional<IterationCount> max_seq_len{};
  Arrays return_tensor_arrays{};  ///< std::true_type{}: ys are TensorArrays
  bool reverse = false;
  Checkpoint checkpoint{};    ///< what is kept for the gradient
  SwapMemory swap_memory{};   ///< true: may be kept in a file
  std::int64_t truncate = 0;  ///< gradients reach back over so many steps; 0: over all. Saves no
                              ///< memory by itself
  std::string name = "scan";
};

/// What scan gives: auto [ys, state, dim] = scan(...).
template <class Ys, class State>
struct Scanned {
  Ys ys;
  State state;
  Dim dim;
};

namespace detail {

template <class T>
inline constexpr bool is_none = std::is_same_v<T, None>;

struct NotInvocable {};
/// The body of a scan without a state, as what may be called with x alone.
template <class Body, class State>
using OnlyX = std::conditional_t<is_none<State>, const Body&, NotInvocable>;

/// y, and the state behind it, whatever of both the body has.
template <class Body, class X, class State>
auto call_scan_body(const Body& body, const X& x, const State& state) {
  const auto call = [&]() -> decltype(auto) {
    if constexpr (std::is_invocable_v<OnlyX<Body, State>, const X&>) {
      return body(x);  // asked first: grad(f) takes any number of arguments
    } else if constexpr (std::is_invocable_v<const Body&, const X&, const State&>) {
      return body(x, state);
    } else {
      static_assert(
          std::is_invocable_v<const Body&, const State&>,
          "scan calls body(x, state), body(state) without xs, or body(x) without a state");
      return body(state);
    }
  };
  if constexpr (is_none<State>) {
    auto y = call();
    if constexpr (IsInstance<std::decay_t<decltype(y)>, std::pair>::value) {
      if constexpr (is_none<std::decay_t<decltype(y.second)>>)
        return y;
      else
        return std::pair{y, None{}};
    } else {
      return std::pair{y, None{}};
    }
  } else {
    auto result = call();
    static_assert(IsInstance<std::decay_t<decltype(result)>, std::pair>::value,
                  "scan's body returns std::pair{y, state}; None{} stands for no y");
    return std::pair{result.first, as_state(result.second)};
  }
}

template <class Cond, class State>
LoopCondition call_scan_cond(const Cond& cond, const State& state) {
  if constexpr (std::is_invocable_v<const Cond&, const State&>)
    return as_condition(std::decay_t<decltype(cond(state))>(cond(state)));
  else
    return as_condition(std::decay_t<decltype(cond(None{}, state))>(cond(None{}, state)));
}

/// ys as they come out: tensors, or TensorArrays in their place.
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

/// An object of the mapped type with containers of the same sizes.
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

/// What each leaf of a template is: a TensorType, or None.
struct CollectTypes {
  std::vector<std::optional<TensorType>>& types;
  template <class T>
  void operator()(const T& leaf, const std::string&) {
    static_assert(std::is_same_v<T, TensorType> || is_none<T>,
                  "ys is a tree of TensorType and None");
    if constexpr (is_none<T>)
      types.push_back(std::nullopt);
    else
      types.push_back(leaf);
  }
  void size(std::size_t, const std::string&) {}
  void key(const std::string&, const std::string&) {}
};
struct CollectTypePaths {
  std::vector<std::string>& paths;
  template <class T>
  void operator()(const T&, const std::string& path) {
    paths.push_back(path);
  }
  void size(std::size_t, const std::string&) {}
  void key(const std::string&, const std::string&) {}
};

/// scan for the function that errors name.
template <class State, class Xs, class Ys, class Cond, class Body, class Arrays>
auto scan_as(const char* function, const Scan<State, Xs, Ys, Cond, Body, Arrays>& spec) {
  static_assert(!is_none<Body>, "scan needs a body");
  using S = typename StateOf<State>::type;
  const S initial = as_state(spec.initial);
  using Returned = decltype(call_scan_body(spec.body, spec.xs, initial));
  using Y = std::decay_t<typename Returned::first_type>;
  static_assert(std::is_same_v<std::decay_t<typename Returned::second_type>, S>,
                "body returns a state of the type that it takes");

  std::optional<Y> first_y, last_y;  // say how containers in y look
  std::vector<std::string> returned_paths;
  ScanSpec leaves;
  leaves.function = function;
  leaves.name = spec.name;
  leaves.spatial_dim = spec.spatial_dim;
  leaves.cond_dims = spec.cond_dims.dims();
  leaves.cond_before_body = spec.cond_before_body;
  leaves.initial = flatten(initial);
  leaves.shape_invariants = invariants_for(str(function, " \"", spec.name, '"'), initial, {});
  leaves.xs = flatten(spec.xs);
  leaves.state_paths = [&] { return leaf_paths(initial, "state"); };
  leaves.xs_paths = [&] { return leaf_paths(spec.xs, "xs"); };
  if constexpr (is_none<Y>) {
    leaves.has_ys = false;
    last_y.emplace();
  }
  if constexpr (!is_none<Ys>) {
    leaves.ys_types.emplace();
    CollectTypes types{*leaves.ys_types};
    walk<false>(spec.ys, {}, types);
    leaves.ys_paths = [&] {
      std::vector<std::string> paths;
      CollectTypePaths fn{paths};
      walk<true>(spec.ys, "y", fn);
      return paths;
    };
  }
  leaves.first_y_paths = [&] { return leaf_paths(*first_y, "y"); };
  leaves.y_paths = [&] { return leaf_paths(*last_y, "y"); };
  if constexpr (!is_none<Cond>)
    leaves.cond = [&](const TreeLeaves& s) {
      return call_scan_cond(spec.cond, unflatten(initial, s));
    };
  leaves.body = [&](const TreeLeaves& x, const TreeLeaves& s) {
    auto [y, next] = call_scan_body(spec.body, unflatten(spec.xs, x), unflatten(initial, s));
    last_y = y;
    if (!first_y) first_y = y;
    return ScanStep{flatten(y), flatten_returned(next, leaves.initial, returned_paths)};
  };
  leaves.returned_paths = [&] { return returned_paths; };
  leaves.max_seq_len = spec.max_seq_len;
  leaves.return_tensor_arrays = Arrays::value;
  leaves.is_reverse = spec.reverse;
  leaves.checkpoint = spec.checkpoint;
  leaves.swap_memory = spec.swap_memory;
  leaves.truncate = spec.truncate;
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

}  // namespace detail

/// Calls body for every slice of xs along spatial_dim, handing a state from call to call, and
/// stacks what it emits.
///
/// body: (x: xs without spatial_dim, s: State) -> (y, State)
///   -> {ys: y with the scanned dim in front, state after the last executed step of each entry, the
///   dim of ys}.
/// Along a ragged dim each entry stops at its own length; with reverse it begins there, and
/// iteration k takes element length - 1 - k, so that xs and y without the entries' dims get them.
/// Slices of ragged dims whose lengths run over the scanned dim have lengths of their own. With
/// cond each entry stops when cond is false for it, or at max_seq_len. Beyond an entry's end ys are
/// exact zeros, its state stays as it was, and nothing has a gradient, whatever stands in the
/// padding. A state leaf without the entries' dims is shared: it lives while any entry does. A Dim
/// in the state may change as in while_loop. If it has lengths over the entries, each entry keeps
/// its own at its end; if it has one size, it changes for all while any entry lives, and tensors
/// with it go on too: what they have beyond an entry's end is made of that entry's padded frames.
/// ys have dims from outside of the body, or of a fixed size. Plain tensors are scanned along their
/// first axis. With cond or max_seq_len the result has a fresh dim. Throws StructureError,
/// ShapeError or DTypeError when body returns another state than it took, ArgumentError for
/// arguments that do not go together.
/// truncate = k: the state that goes into iterations k, 2k, 3k, ... (with reverse, of an entry that
/// ends before others, counted from its own end) is a constant to gradients, so
/// that each piece of k iterations has the gradient that it would have alone, with the state handed
/// on (truncated backpropagation through time, Williams & Peng 1990); the values are the same, and
/// with k at least the number of iterations, the gradients, too. It saves no memory by itself: add
/// `checkpoint`, or read the sequence in pieces (sequence.h). Memory: reverse mode keeps what
/// body's gradient reads, per step, or what `checkpoint` and `swap_memory` say; under a tape of
/// eager mode body is then recorded as in a trace, once at each call of scan (of one inside of a
/// loop of eager mode without either: in each of its steps), and must not read values. Source:
/// RETURNN's scan; Griewank & Walther (2008), ch. 12.
template <class State, class Xs, class Ys, class Cond, class Body, class Arrays>
auto scan(const Scan<State, Xs, Ys, Cond, Body, Arrays>& spec) {
  return detail::scan_as("scan", spec);
}

}  // namespace reel
