// frontend/loops/fold.h — fori_loop, map, foldl and foldr, short forms of scan.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "reel/core/base/visibility.h"
#include "reel/frontend/loops/scan.h"

REEL_API_BEGIN
namespace reel {

/// Options of fori_loop.
struct ForiOptions {
  int unroll = 1;                  ///< at least 1; ignored: it never changes a result
  Checkpoint checkpoint = {};      ///< selects the residuals that are saved, as for scan
  SwapMemory swap_memory = {};     ///< true: residuals may be spilled to a file
  std::string name = "fori_loop";  ///< named in errors
};
/// Options of map, foldl and foldr.
struct FoldOptions {
  std::optional<Dim> spatial_dim = {};  ///< the dim of xs to scan; leave out for plain tensors
  Checkpoint checkpoint = {};           ///< selects the residuals that are saved, as for scan
  SwapMemory swap_memory = {};          ///< true: residuals may be spilled to a file
  std::string name = {};                ///< default: the name of the function
};

namespace detail {

struct ForiSpec {
  IterationCount lower, upper;
  const ForiOptions& options;
  TreeLeaves initial;
  std::vector<std::optional<PartialShape>> shape_invariants;  ///< as in ScanSpec
  PathsFn paths, returned_paths;
  std::function<TreeLeaves(const Tensor& i, TreeLeaves state)> body;
};
TreeLeaves fori_loop_leaves(const ForiSpec& spec);

template <class Body, class State>
constexpr bool is_fori_body() {
  constexpr bool kIsBody = std::is_invocable_v<Body, const Tensor&, const State&>;
  static_assert(kIsBody,
                "the body of fori_loop is called with (i, state): the number of the iteration, a "
                "Tensor, and the state, whose numbers have become tensors");
  if constexpr (kIsBody)
    return returns_tree<std::invoke_result_t<Body, const Tensor&, const State&>>();
  else
    return false;
}

/// One end element of xs (the first, or the last if from_end), and the rest.
struct EndAndRest {
  TreeLeaves end, rest;
  std::optional<Dim> dim;  ///< dim of the rest
};
EndAndRest take_end(const TreeLeaves& xs, const PathsFn& paths, const FoldOptions& options,
                    bool from_end);

template <class F, class Xs>
constexpr bool can_be_mapped() {
  constexpr bool kTakesSlice = std::is_invocable_v<F, const Xs&>;
  static_assert(!std::is_arithmetic_v<Xs>,
                "map runs over the slices of tensors, not over a number: give range(n), or use "
                "fori_loop");
  static_assert(kTakesSlice || std::is_arithmetic_v<Xs>,
                "the function given to map is called with a slice of xs, which has the type of xs");
  if constexpr (kTakesSlice && !std::is_arithmetic_v<Xs>)
    return returns_tree<std::invoke_result_t<F, const Xs&>>();
  else
    return false;
}

template <class F, class Xs, class State>
constexpr bool can_be_folded() {
  constexpr bool kTakesBoth = std::is_invocable_v<F, const State&, const Xs&>;
  static_assert(kTakesBoth,
                "the function given to foldl or foldr is called with (state, x): the state, whose "
                "numbers have become tensors, and a slice of xs");
  if constexpr (kTakesBoth)
    return returns_tree<std::invoke_result_t<F, const State&, const Xs&>>();
  else
    return false;
}

inline const char* function_of(bool from_end) { return from_end ? "foldr" : "foldl"; }

/// Returns the state after state = f(state, x) for each x, from the first, or from the last if
/// from_end.
template <class F, class Xs, class State>
auto fold(F& f, const Xs& xs, const State& initial, const FoldOptions& options, bool from_end) {
  using S = typename StateOf<State>::type;
  if constexpr (!can_be_folded<F&, Xs, S>()) {
    return as_state(initial);
  } else {
    auto body = [&](const Xs& x, S state) {
      if constexpr (std::is_invocable_v<F&, S, const Xs&>)
        return std::pair{None{}, as_state(f(std::move(state), x))};
      else
        return std::pair{None{}, as_state(f(std::as_const(state), x))};
    };
    using OfBody = Scan<State, Xs, None, None, decltype(body)>;  // clang 14 does not deduce them
    return scan_as(function_of(from_end), OfBody{.spatial_dim = options.spatial_dim,
                                                 .initial = initial,
                                                 .xs = xs,
                                                 .body = body,
                                                 .reverse = from_end,
                                                 .checkpoint = options.checkpoint,
                                                 .swap_memory = options.swap_memory,
                                                 .name = options.name})
        .state;
  }
}

template <class F, class Xs>
Xs fold(F& f, const Xs& xs, const FoldOptions& options, bool from_end) {
  const EndAndRest parts = take_end(
      flatten(xs), [&] { return leaf_paths(xs, "xs"); }, options, from_end);
  FoldOptions of_rest = options;
  of_rest.spatial_dim = parts.dim;
  return fold(f, unflatten(xs, parts.rest), unflatten(xs, parts.end), of_rest, from_end);
}

inline FoldOptions named(FoldOptions options, const char* function) {
  if (options.name.empty()) options.name = function;
  return options;
}

}  // namespace detail

/// Runs for (i = lower; i < upper; ++i) state = body(i, state), and returns the last state.
///
/// lower, upper: numbers, or integer scalars of one dtype, which is then the dtype of i. Two
/// numbers: i32, or i64 if a number needs it. body: (i, State) -> State. initial: a tree;
/// numbers in a tuple, a pair or alone become tensors. Returns `initial` if upper <= lower. unroll
/// is accepted for programs ported from JAX. Throws as scan does; DTypeError or ShapeError for
/// bounds, ArgumentError for unroll. Source: jax.lax.fori_loop.
template <class Body, class Initial>
typename detail::StateOf<Initial>::type fori_loop(const IterationCount& lower,
                                                  const IterationCount& upper, Body&& body,
                                                  const Initial& initial,
                                                  const ForiOptions& options = {}) {
  using State = typename detail::StateOf<Initial>::type;
  const State start = detail::as_state(initial);
  if constexpr (!detail::is_fori_body<Body&, State>()) {
    return start;
  } else {
    using Returned = std::decay_t<decltype(detail::as_state(body(Tensor(), start)))>;
    static_assert(std::is_same_v<Returned, State>,
                  "body returns a state of the type that it takes");
    const detail::TreeRef tree(start);
    const TreeLeaves first = flatten(start);
    std::vector<std::string> returned_paths;
    const auto on_leaves = [&](const Tensor& i, TreeLeaves leaves) {
      State state = unflatten(start, std::move(leaves));
      return detail::flatten_returned(
          detail::TreeRef(detail::as_state(detail::call_with_last(body, state, i))), first,
          returned_paths);
    };
    return unflatten(
        start, detail::fori_loop_leaves(
                   {lower, upper, options, first, detail::invariants_for("fori_loop", tree, {}),
                    detail::paths_fn(tree, "state"), [&] { return returned_paths; }, on_leaves}));
  }
}

/// Returns f of every slice of xs, stacked: a scan without a state.
///
/// xs: a tree of tensors. f: (slice of xs) -> a tree. Returns that tree with the scanned dim in
/// front. Along a ragged dim, exact zeros beyond an entry's end. If xs have no slices, returns
/// zero-size tensors of the types that f returns. Source: tf.map_fn, jax.lax.map.
template <class F, class Xs>
auto map(F&& f, const Xs& xs, const FoldOptions& options = {}) {
  if constexpr (!detail::can_be_mapped<F&, Xs>()) {
    return Tensor();
  } else {
    auto body = [&](const Xs& x) { return std::pair{detail::as_state(f(x)), None{}}; };
    using OfBody = Scan<None, Xs, None, None, decltype(body)>;  // clang 14 does not deduce them
    return detail::scan_as("map", OfBody{.spatial_dim = options.spatial_dim,
                                         .xs = xs,
                                         .body = body,
                                         .checkpoint = options.checkpoint,
                                         .swap_memory = options.swap_memory,
                                         .name = detail::named(options, "map").name})
        .ys;
  }
}

/// Returns f(... f(f(initial, x_0), x_1) ..., x_n).
///
/// f: (State, slice of xs) -> State. initial: a tree; numbers in a tuple, a pair or alone become
/// tensors. Along a ragged dim each entry finishes with its last element. Source: tf.foldl.
template <class F, class Xs, class Initial>
auto foldl(F&& f, const Xs& xs, const Initial& initial, const FoldOptions& options = {}) {
  return detail::fold(f, xs, initial, detail::named(options, "foldl"), false);
}
/// Returns foldl with the first element as the initial value. Along a dim made from lengths, an
/// entry without elements returns zeros, also if all are empty. Otherwise throws ArgumentError if
/// xs have no elements; IndexError if only a run of a trace knows that.
template <class F, class Xs>
Xs foldl(F&& f, const Xs& xs, const FoldOptions& options = {}) {
  return detail::fold(f, xs, detail::named(options, "foldl"), false);
}

/// Returns f(... f(f(initial, x_n), x_n-1) ..., x_0). Along a ragged dim each entry begins with its
/// last element. Arguments as for foldl. Source: tf.foldr.
template <class F, class Xs, class Initial>
auto foldr(F&& f, const Xs& xs, const Initial& initial, const FoldOptions& options = {}) {
  return detail::fold(f, xs, initial, detail::named(options, "foldr"), true);
}
/// Returns foldr with the last element as the initial value. Throws as foldl without an initial
/// value.
template <class F, class Xs>
Xs foldr(F&& f, const Xs& xs, const FoldOptions& options = {}) {
  return detail::fold(f, xs, detail::named(options, "foldr"), true);
}

}  // namespace reel
REEL_API_END
