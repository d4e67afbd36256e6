// frontend/layers/causal_conv.h — CausalConv, a convolution over time that sees no later element.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "reel/core/base/visibility.h"
#include "reel/core/types/dim.h"
#include "reel/core/types/dtype.h"
#include "reel/core/types/tensor.h"
#include "reel/frontend/layers/initial_values.h"

REEL_API_BEGIN
namespace reel {

/// Options of CausalConv::init.
struct CausalConvOptions {
  std::int64_t dilation = 1;  ///< as for conv
  bool has_bias = true;       ///< false: without `bias`
  DType dtype = f32;          ///< of the parameters
  InitialValues filter = {};  ///< of the filter; default: glorot_uniform
};

/// A causal convolution over time, y_t = Σ_k x_{t - (taps - 1 - k) · dilation} · filter_k + b, as a
/// layer for whole sequences and as a cell for single time steps, with equal results. x is zero
/// before the first step.
struct CausalConv {
  /// The inputs that later steps see: [..., past, in], the latest one last.
  using State = Tensor;

  Tensor filter;               ///< {taps, in, out}; depthwise: {taps, in}
  std::optional<Tensor> bias;  ///< {out}
  Dim taps = 0;                ///< dim of the filter
  Dim in = 0, out = 0;         ///< dims of channels; the same one if depthwise
  Dim past = 0, window = 0;    ///< (taps - 1) · dilation, and one more
  std::int64_t dilation = 1;   ///< as for conv

  /// Returns a layer with a filter from options.filter and b = 0. Throws ArgumentError if a dim has
  /// no name or no known size, or a number is not positive; DTypeError for a dtype that is not
  /// floating.
  static CausalConv init(std::int64_t taps, const Dim& in, const Dim& out,
                         const CausalConvOptions& options = {});
  /// Returns a layer with a filter of its own for each channel, as in Mamba's blocks.
  static CausalConv depthwise(std::int64_t taps, const Dim& channel,
                              const CausalConvOptions& options = {});

  /// Return the dims of x and of y.
  const Dim& in_dim() const { return in; }
  const Dim& out_dim() const { return out; }
  /// Returns zeros over the given dims, `past` and `in`.
  State initial_state(const Dims& dims) const;
  /// Runs one time step. x: [..., in] -> {y: [..., out], the next state}.
  std::pair<Tensor, State> operator()(const Tensor& x, const State& state) const;
  /// Runs a whole sequence from the initial state. x: [..., time, in] -> [..., time, out].
  Tensor operator()(const Tensor& x, const Dim& time) const;
  /// Runs a part of a sequence. Returns {y, the state behind each entry's last step}.
  std::pair<Tensor, State> operator()(const Tensor& x, const Dim& time, const State& state) const;
};

}  // namespace reel
REEL_API_END
