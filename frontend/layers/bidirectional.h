// frontend/layers/bidirectional.h — bidirectional: one cell forwards, another backwards.
#pragma once

#include <optional>

#include "reel/core/functions/shape.h"
#include "reel/frontend/layers/recur.h"

namespace reel {

struct BidirectionalOptions {
  std::optional<Dim> out{};     ///< the features of both side by side; by default a fresh dim
  Checkpoint checkpoint = {};   ///< what is kept for the gradient of each, as of scan
  SwapMemory swap_memory = {};  ///< true: may be kept in a file
};

/// What bidirectional gives: auto [outputs, forward, backward] = bidirectional(...).
template <class Forward, class Backward>
struct Bidirectional {
  Tensor outputs;
  Forward forward;
  Backward backward;  ///< at the beginning of each entry, where it ends
};

/// Two cells over the same xs, one from each end.
///
/// xs: [..., dim, in] -> {outputs: [dim, ..., out], the forward cell's features before the backward
/// one's; the final state of each}. Along a ragged dim the backward cell starts at each entry's own
/// end. Source: Schuster & Paliwal (1997).
template <class Forward, class Backward>
Bidirectional<typename Forward::State, typename Backward::State> bidirectional(
    const Forward& forward, const Backward& backward, const Tensor& xs, const Dim& dim,
    const BidirectionalOptions& options = {}) {
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
