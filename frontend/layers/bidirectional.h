// frontend/layers/bidirectional.h — bidirectional: one cell forwards and another backwards.
#pragma once

#include <optional>
#include <string>

#include "reel/core/base/visibility.h"
#include "reel/core/functions/shape.h"
#include "reel/frontend/layers/recur.h"

REEL_API_BEGIN
namespace reel {

/// Options of bidirectional.
struct BidirectionalOptions {
  std::optional<Dim> out{};     ///< the concatenated features; default: a new dim of their number
  Checkpoint checkpoint = {};   ///< selects each cell's saved residuals, as for scan
  SwapMemory swap_memory = {};  ///< true: residuals may be spilled to a file
};

namespace detail {
/// Throws ShapeError unless the features of both directions together fill `out`.
/// taker: the place of `out` in the message, such as "options.out".
void check_features(const std::string& function, const Dim& forward, const Dim& backward,
                    const Dim& out, const std::string& taker);
}  // namespace detail

/// The result of bidirectional: auto [outputs, forward, backward] = bidirectional(...).
template <class Forward, class Backward>
struct Bidirectional {
  Tensor outputs;     ///< of both directions
  Forward forward;    ///< the final state of the forward direction
  Backward backward;  ///< final state: at the beginning of each entry
};

/// Runs two cells over the same xs, one from each end.
///
/// xs: [..., dim, in]. Returns {outputs, final state of each cell}; outputs: [dim, ..., out], with
/// the features of the forward cell first. Along a ragged dim the backward cell starts at each
/// entry's own end. A layer behind it, made for a dim of its own, needs that dim as options.out:
/// bidirectional(a, b, x, time, {.out = linear.in}). Throws as recur does; ShapeError if
/// options.out has another size than both directions. Source: Schuster & Paliwal (1997).
template <class Forward, class Backward>
Bidirectional<typename Forward::State, typename Backward::State> bidirectional(
    const Forward& forward, const Backward& backward, const Tensor& xs, const Dim& dim,
    const BidirectionalOptions& options = {}) {
  if (options.out)
    detail::check_features("bidirectional", forward.out_dim(), backward.out_dim(), *options.out,
                           "options.out");
  auto ahead = recur(
      forward, xs, dim,
      {.checkpoint = options.checkpoint, .swap_memory = options.swap_memory, .name = "forward"});
  auto back = recur(backward, xs, dim,
                    {.reverse = true,
                     .checkpoint = options.checkpoint,
                     .swap_memory = options.swap_memory,
                     .name = "backward"});
  return {concat({ahead.outputs, back.outputs}, forward.out_dim(), options.out),
          std::move(ahead.state), std::move(back.state)};
}

}  // namespace reel
REEL_API_END
