// frontend/layers/mamba_block.h — MambaBlock, a selective state space model.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "reel/core/base/visibility.h"
#include "reel/core/types/dim.h"
#include "reel/core/types/dtype.h"
#include "reel/core/types/tensor.h"
#include "reel/frontend/layers/causal_conv.h"
#include "reel/frontend/layers/linear.h"

REEL_API_BEGIN
namespace reel {

/// Options of MambaBlock::init.
struct MambaOptions {
  std::int64_t expansion = 2;  ///< inner channels for each of model
  std::int64_t states = 16;    ///< N: states of each channel
  std::int64_t rank = 0;       ///< of the step sizes' projection; default: ceil(model / 16)
  std::int64_t taps = 4;       ///< of the convolution
  DType dtype = f32;           ///< of the parameters
};

/// x, z = split(u·W); x = silu(conv(x)); Δ, B, C = projections of x;
///   s' = exp(Δ A) s + Δ B x,   y = (C s' + D x) silu(z),   projected to `model`.
///
/// A cell for recur and steps, and a layer for whole sequences by linear_scan, with equal results
/// up to rounding. Source: Gu & Dao (2023), algorithm 2 and section 3.4.
struct MambaBlock {
  /// The inputs that the convolution sees, and the states of all channels.
  struct State {
    CausalConv::State past;  ///< [..., past, inner]
    Tensor s;                ///< [..., inner, states]
  };

  Linear in_projection;       ///< model -> x and z
  CausalConv conv;            ///< depthwise, of x
  Linear step, step_up;       ///< Δ: inner -> rank -> inner, then softplus
  Linear to_b, to_c;          ///< B, C: inner -> states
  Tensor log_a;               ///< A = -exp(log_a): {inner, states}
  Tensor skip;                ///< D: {inner}
  Linear out;                 ///< inner -> model
  Dim model = 0;              ///< features of u and of the result
  Dim inner = 0, states = 0;  ///< channels, and the states of each

  /// Returns a block with A = -1 ... -states in each channel, D = 1, and step sizes from 0.001 to
  /// 0.1 for x = 0. Throws ArgumentError if the dim has no name or no known size, or a number is
  /// not positive; DTypeError for a dtype that is not floating.
  static MambaBlock init(const Dim& model, const MambaOptions& options = {});

  /// Return the dims of u and of y.
  const Dim& in_dim() const { return model; }
  const Dim& out_dim() const { return model; }
  /// Returns zeros.
  State initial_state(const Dims& dims) const;
  /// Runs one time step. u: [..., model] -> {y: [..., model], the next state}.
  std::pair<Tensor, State> operator()(const Tensor& u, const State& state) const;
  /// Runs a whole sequence from the initial state. u: [..., time, model] -> the same dims.
  Tensor operator()(const Tensor& u, const Dim& time) const;
};

}  // namespace reel
REEL_API_END
