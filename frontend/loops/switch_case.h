// frontend/loops/switch_case.h — switch_case: one of several branches, by number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "reel/core/base/visibility.h"
#include "reel/core/functions/elementwise.h"
#include "reel/frontend/loops/while_loop.h"

REEL_API_BEGIN
namespace reel {

namespace detail {
/// Returns the index as a scalar i64. Throws DTypeError or ShapeError.
Tensor checked_branch_index(const Tensor& index);

/// Names the branches of these numbers, for errors. Each stands for all branches of one side.
BranchNames names_of_branches(std::size_t first, std::size_t second);

template <class... Branches>
constexpr bool are_numbered_branches() {
  constexpr bool kTakeNothing = (std::is_invocable_v<Branches> && ...);
  static_assert(kTakeNothing,
                "the branches of switch_case are functions without arguments: let them capture the "
                "values that they read");
  if constexpr (kTakeNothing)
    return (returns_tree<std::invoke_result_t<Branches>>() && ...);
  else
    return false;
}

/// Runs branch `index`. Requires First <= index < First + Count.
template <std::size_t First, std::size_t Count, class Branches>
auto run_branch(const Tensor& index, const Branches& branches) {
  if constexpr (Count == 1) {
    return as_state(std::get<First>(branches)());
  } else {
    constexpr std::size_t kHalf = Count / 2;
    return cond_as(
        names_of_branches(First, First + kHalf),
        less(index, static_cast<std::int64_t>(First + kHalf)),
        [&] { return run_branch<First, kHalf>(index, branches); },
        [&] { return run_branch<First + kHalf, Count - kHalf>(index, branches); });
  }
}
}  // namespace detail

/// Runs branches[index]() and returns its result.
///
/// index: a number, or an integer scalar. It is clamped: a negative index runs the first branch,
/// and an index beyond the last branch runs the last one. branches: functions without arguments,
/// which return trees of the same structure and types. In eager mode only the chosen branch is
/// called; a trace records all of them, as nested conds, and runs one. Gradients and errors as for
/// cond. Source: jax.lax.switch.
template <class Index, class... Branches>
auto switch_case(const Index& index, Branches&&... branches) {
  static_assert(std::is_integral_v<Index> || std::is_same_v<Index, Tensor>,
                "the index of switch_case is a number, or an integer scalar Tensor");
  static_assert(sizeof...(Branches) > 0, "switch_case takes at least one branch");
  const std::tuple<Branches&...> all(branches...);
  if constexpr (!detail::are_numbered_branches<Branches&...>())
    return Tensor();
  else if constexpr (std::is_integral_v<Index>)
    return detail::run_branch<0, sizeof...(Branches)>(
        detail::number_as_tensor(static_cast<std::int64_t>(index)), all);
  else
    return detail::run_branch<0, sizeof...(Branches)>(detail::checked_branch_index(index), all);
}

}  // namespace reel
REEL_API_END
