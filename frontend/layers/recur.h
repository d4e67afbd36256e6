// frontend/layers/recur.h — recur: a cell along a dim.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "reel/frontend/scan.h"

namespace reel {

// A cell is a tree of parameters with a type State, initial_state(dims), in_dim(), out_dim(), and a
// call (x, state) -> std::pair{y, state} that makes one step: x has in_dim(), y has out_dim().

template <class State>
struct RecurOptions {
  std::optional<State> initial{};  ///< by default cell.initial_state
  bool reverse = false;            ///< from the end of each entry to its beginning
  Checkpoint checkpoint = {};      ///< what is kept for the gradient, as of scan
  SwapMemory swap_memory = {};     ///< true: may be kept in a file
  std::int64_t truncate = 0;       ///< gradients reach back over so many steps, as of scan
  std::string name = "recur";      ///< for errors
};

/// What recur gives: auto [outputs, state] = recur(...).
template <class State>
struct Recurred {
  Tensor outputs;
  State state;
};

namespace detail {
/// Throws ShapeError unless xs have both dims, ArgumentError when they are the same.
void check_xs(const Tensor& xs, const Dim& dim, const Dim& in, std::string_view name);
/// The dims of a state beside the features: what remains of xs within a step, and what the ends of
/// entries run over.
Dims state_dims(const Tensor& xs, const Dim& dim, const Dim& in);
}  // namespace detail

/// Calls the cell for every slice of xs along `dim`, handing its state from call to call.
///
/// xs: [..., dim, in] in any order -> {outputs: [dim, ..., out], state after the last step of each
/// entry}. Along a ragged dim each entry stops at its own length: beyond it outputs are 0, and its
/// state stays. Throws as scan, ShapeError for xs without `dim` or cell.in_dim().
template <class Cell>
Recurred<typename Cell::State> recur(const Cell& cell, const Tensor& xs, const Dim& dim,
                                     const RecurOptions<typename Cell::State>& options = {}) {
  using State = typename Cell::State;
  detail::check_xs(xs, dim, cell.in_dim(), options.name);
  auto scanned = scan(Scan{
      .spatial_dim = dim,
      .initial = options.initial ? *options.initial
                                 : cell.initial_state(detail::state_dims(xs, dim, cell.in_dim())),
      .xs = xs,
      .body = [&](const Tensor& x, const State& state) { return cell(x, state); },
      .reverse = options.reverse,
      .checkpoint = options.checkpoint,
      .swap_memory = options.swap_memory,
      .truncate = options.truncate,
      .name = options.name,
  });
  return {std::move(scanned.ys), std::move(scanned.state)};
}

}  // namespace reel
