// frontend/layers/linear_attention.h — linear attention and the delta rule: attention whose memory
// is one matrix, for whole sequences and for single time steps.
#pragma once

#include <optional>
#include <utility>

#include "reel/core/base/visibility.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// Options of linear_attention and linear_attention_step.
struct LinearAttentionOptions {
  /// Logarithms of the factors by which the state decays, g: over dims of k, with or without
  /// features. Default: the state does not decay.
  std::optional<Tensor> decay{};
  /// Rates of the delta rule, β: over dims of v. Default: values are added as they are.
  std::optional<Tensor> beta{};
  std::optional<double> scale{};  ///< of the result; default: 1 / sqrt(size of features)
};

/// Runs a sequence, and returns {y, the state behind the last time step of each entry}:
///
///   S' = exp(g_t) S_{t-1},   S_t = S' + k_t u_tᵀ,   y_t = scale · S_tᵀ q_t,
///   with u_t = v_t, or u_t = β_t (v_t - S'ᵀ k_t) by the delta rule.
///
/// q: [..., time, features]; it may have dims that k and v lack, such as heads that share a state.
/// k: [..., time, features]. v: [..., time, values...]. state: the dims of k and v without time,
/// zeros for the beginning. y: the dims of q without features, then dims that only v has; time in
/// front. All dims are named; time may be ragged. Memory of gradients: a state for each time step.
/// Throws ShapeError if a dim is missing, or q and v have other dims than k in common with time;
/// DTypeError unless all tensors are floating and of one dtype.
/// Sources: Katharopoulos et al. (2020), eq. 16 to 20; Yang, Kautz & Hatamizadeh (2024), "Gated
/// Delta Networks", eq. 10.
std::pair<Tensor, Tensor> linear_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                           const Dim& time, const Dim& features,
                                           const Tensor& state,
                                           const LinearAttentionOptions& options = {});

/// Runs one time step, for tensors without the dim of time. Returns {y, the next state}.
std::pair<Tensor, Tensor> linear_attention_step(const Tensor& q, const Tensor& k, const Tensor& v,
                                                const Dim& features, const Tensor& state,
                                                const LinearAttentionOptions& options = {});

}  // namespace reel
REEL_API_END
