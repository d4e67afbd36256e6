// frontend/layers/attention.h — attention: softmax(q kᵀ) v, without the matrix of weights.
#pragma once

#include <cstdint>
#include <optional>

#include "reel/core/base/visibility.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// Options of attention.
struct AttentionOptions {
  std::optional<Dim> causal{};    ///< a dim of q: its position i sees keys 0 ... i only
  std::optional<double> scale{};  ///< of the products; default: 1 / sqrt(size of features)
  std::int64_t block = 128;       ///< keys that are computed at a time; changes rounding only
};

/// Returns Σ over keys of w v with w = softmax over keys of scale · (q · k).
///
/// q: [..., features]. k: [..., keys, features]. v: [..., keys, ...] without features of k. Result:
/// the dims of q without features, dims of k that q lacks, then dims that only v has. All dims are
/// named. keys may be ragged: padding of k and v never counts, whatever it holds. A query that sees
/// no key gets zeros.
///
/// Streamed over blocks of keys in both directions: neither the result nor a gradient keeps a
/// tensor over queries and keys; second derivatives do. Results are exact up to rounding.
/// Throws ShapeError if a dim is missing, DTypeError unless q, k and v are floating and of one
/// dtype, ArgumentError for a block below 1.
/// Source: Dao et al. (2022), "FlashAttention"; Rabe & Staats (2021).
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const Dim& keys,
                 const Dim& features, const AttentionOptions& options = {});

}  // namespace reel
REEL_API_END
