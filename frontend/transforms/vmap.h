// frontend/transforms/vmap.h — vmap: a function of one row, applied to all rows at once.
#pragma once

#include <concepts>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "reel/core/base/visibility.h"
#include "reel/frontend/loops/while_loop.h"
#include "reel/frontend/tree/leaves.h"
#include "reel/frontend/tree/tree.h"

REEL_API_BEGIN
namespace reel {

namespace detail {

struct VmapSpec {
  std::optional<Dim> dim;    ///< of the rows; none: the first axis of every tensor
  std::optional<Dims> dims;  ///< instead of `dim`: every entry of these is a row
  TreeLeaves arguments;
  PathsFn paths;
  std::function<TreeLeaves(const TreeLeaves&)> function;
  PathsFn result_paths;
};
TreeLeaves vmap_leaves(const VmapSpec& spec);

/// Returns vmap(f) along a dim or along dims.
template <class F>
auto vmapped(F f, std::optional<Dim> dim, std::optional<Dims> dims) {
  return [f = std::move(f), dim = std::move(dim),
          dims = std::move(dims)]<class... Args>(const Args&... args) {
    static_assert(std::is_invocable_v<const F&, const Args&...>,
                  "a function under vmap is called with the arguments of f, which takes them by "
                  "value or by const reference");
    if constexpr (!returns_tree<std::invoke_result_t<const F&, const Args&...>>()) {
      return Tensor();
    } else {
      const std::tuple<Args...> arguments(args...);
      const auto call = [&](const TreeLeaves& rows) {
        return as_state(std::apply(f, unflatten(arguments, rows)));
      };
      using R = decltype(call(TreeLeaves()));
      std::optional<R> result;  // holds the container sizes of the result
      const TreeLeaves leaves =
          vmap_leaves({dim, dims, flatten(arguments), [&] { return leaf_paths(arguments); },
                       [&](const TreeLeaves& rows) {
                         result.emplace(call(rows));
                         return flatten(*result);
                       },
                       [&] { return leaf_paths(*result, "the result"); }});
      return R(unflatten(*result, leaves));
    }
  };
}

}  // namespace detail

/// Returns a function that applies f to all rows at once, with the results of map(f, ...) up to
/// rounding.
///
/// f: a function of trees. It sees its arguments without `dim`: arguments that have the dim lose
/// it, others and captured tensors are the same in every row. The results get `dim` in front.
/// Without `dim`, or with a plain size, every tensor among the arguments has the rows as its first
/// axis. Arguments that are Dims or numbers are passed on, and so is a TensorArray, whole.
/// Gradients of an EmbeddingTable and other IndexedSlices have rows for each call of f: a result of
/// f is made dense in f, by to_dense or with_dense_tables.
///
///   auto distances = vmap([&](const Tensor& x) { return norm(x - center, 0); }, batch)(points);
///
/// f is recorded, in eager mode too, so it must not read values of tensors. Ops are applied once to
/// all rows. A loop becomes one loop over all rows, in which rows may finish one by one. Ops
/// without such a form run in a loop over the rows, and if f keeps a TensorArray that differs
/// between rows, all of f does, as in map. Random numbers are as in map: every row has its own.
/// A ragged dim with lengths over the rows has one length in f. Along a ragged `dim`, f runs row by
/// row.
///
/// A `cond` with a predicate for each row computes each branch that some row takes. A costly
/// branch, or one with an effect such as print, is computed for the rows that take it: these are
/// packed along a dim called "taken". A cheap branch is computed for all rows, which is faster;
/// rows that do not take it read the values of a row that does. The same holds for a branch of a
/// vmap inside f, and for a branch that keeps a TensorArray for each row. In errors of checks, rows
/// of a costly branch count along "taken".
///
/// Calls may be nested, and be inside of and around gradients, loops, branches and jit. Throws
/// ShapeError if no argument has the dim, if numbers of rows differ, if a result has the dim
/// already, or has plain axes although the rows have a name; TraceError if f reads a value;
/// StructureError for a TensorArray as a result; the exceptions of f. Source: jax.vmap.
template <class F>
auto vmap(F f, std::optional<Dim> dim = {}) {
  return detail::vmapped(std::move(f), std::move(dim), {});
}

/// Returns a function that applies f to all entries of several named dims at once, such as
/// vmap(f, Dims{batch, beam}). Each entry is a row, as along one dim; the results get the dims in
/// front, in this order.
///
/// The dims are merged around f, so the rows that take a branch are packed along all of them. An
/// argument that lacks some of the dims is repeated along these. If a dim is ragged, its padding is
/// left out, and results have zeros there.
///
/// Throws ArgumentError if there are no dims, or if a dim is plain; ShapeError if no argument has
/// any of them; otherwise as vmap along one dim.
template <class F, std::same_as<Dims> D>
auto vmap(F f, D dims) {
  return detail::vmapped(std::move(f), {}, std::move(dims));
}

}  // namespace reel
REEL_API_END
