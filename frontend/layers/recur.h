// frontend/layers/recur.h — recur, which runs a cell along a dim.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "reel/core/base/visibility.h"
#include "reel/frontend/loops/scan.h"

REEL_API_BEGIN
namespace reel {

// A cell is a tree of parameters with a type State, initial_state(dims), in_dim(), out_dim(), and a
// call operator. The call (x, state) -> std::pair{y, state} runs one time step; x has in_dim(), y
// has out_dim().

/// Options of recur.
template <class State>
struct RecurOptions {
  std::optional<State> initial{};  ///< default: cell.initial_state
  bool reverse = false;            ///< from the end of each entry to its beginning
  Checkpoint checkpoint = {};      ///< selects the residuals that are saved, as for scan
  SwapMemory swap_memory = {};     ///< true: residuals may be spilled to a file
  std::int64_t truncate = 0;   ///< the number of iterations that gradients reach back, as for scan
  std::string name = "recur";  ///< named in errors
};

/// The result of recur: auto [outputs, state] = recur(...).
template <class State>
struct Recurred {
  Tensor outputs;  ///< y of all steps, stacked
  State state;     ///< the final state of each entry
};

namespace detail {
/// Throws ShapeError unless xs have both dims; ArgumentError if the dims are the same or xs are
/// empty.
void check_xs(const Tensor& xs, const Dim& dim, const Dim& in, std::string_view name);
/// Returns the dims of a state without the features: the dims of a slice of xs, and the dims of
/// dim's lengths.
Dims state_dims(const Tensor& xs, const Dim& dim, const Dim& in);
}  // namespace detail

/// Calls the cell for every slice of xs along `dim` and passes its state from call to call.
///
/// xs: [..., dim, in] in any order. Returns {outputs: [dim, ..., out], final state of each entry}.
/// Along a ragged dim each entry runs for its own length: beyond it outputs are 0 and the state
/// stays. Throws as scan does; ShapeError if xs lack `dim` or cell.in_dim(); ArgumentError if these
/// are the same.
template <class Cell>
Recurred<typename Cell::State> recur(const Cell& cell, const Tensor& xs, const Dim& dim,
                                     const RecurOptions<typename Cell::State>& options = {}) {
  using State = typename Cell::State;
  detail::check_xs(xs, dim, cell.in_dim(), options.name);
  auto body = [&](const Tensor& x, State state) { return cell(x, std::move(state)); };
  // clang 14 does not deduce these.
  using Arguments = Scan<State, Tensor, None, None, decltype(body)>;
  auto scanned = scan(Arguments{
      .spatial_dim = dim,
      .initial = options.initial ? *options.initial
                                 : cell.initial_state(detail::state_dims(xs, dim, cell.in_dim())),
      .xs = xs,
      .body = body,
      .reverse = options.reverse,
      .checkpoint = options.checkpoint,
      .swap_memory = options.swap_memory,
      .truncate = options.truncate,
      .name = options.name,
  });
  return {std::move(scanned.ys), std::move(scanned.state)};
}

}  // namespace reel
REEL_API_END
