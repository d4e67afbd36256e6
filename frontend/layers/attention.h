// frontend/layers/attention.h — attention: softmax(q kᵀ) v, without the matrix of weights.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "reel/core/base/visibility.h"
#include "reel/core/types/tensor.h"
#include "reel/frontend/tree/tree.h"

REEL_API_BEGIN
namespace reel {

/// Positions of the queries and of the keys for which a bias is computed.
struct AttentionBlock {
  Tensor queries;  ///< i32, over the dim of queries and the dims of the offset; empty if unknown
  Tensor keys;     ///< i32: [block]; those behind the last key are not seen, whatever the bias
  Dim block = 0;   ///< the keys of this block
};

/// A bias that is computed block by block; see attention_bias.
struct AttentionBias {
  Tensors inputs;  ///< tensors with gradients
  std::function<Tensor(const Tensors& inputs, const AttentionBlock& at)> of;  ///< computes it
};

/// Returns a bias f(parameters, block), with gradients to the parameters, which are a tree.
///
/// f returns numbers to add to the scaled products, or booleans: false hides a key. Its dims are
/// among `block` and the dims of q and k, not features or keys. Only the bias of one block is in
/// memory; f is called again for gradients, so it must not draw random numbers.
template <class Tree, class F>
AttentionBias attention_bias(const Tree& parameters, F f) {
  const TreeLeaves leaves = flatten(parameters);
  return {tensors_of(leaves),
          [leaves, parameters, f = std::move(f)](const Tensors& inputs, const AttentionBlock& at)
              -> Tensor { return f(unflatten(parameters, with_tensors(leaves, inputs)), at); }};
}

/// Options of attention.
struct AttentionOptions {
  std::optional<Dim> causal{};    ///< a dim of q: its position i sees keys 0 ... offset + i only
  std::optional<double> scale{};  ///< of the products; default: 1 / sqrt(size of features)
  std::int64_t block = 128;       ///< keys that are computed at a time; changes rounding only
  /// The dim of q along which `window`, `offset` and `bias_of` count positions; default: `causal`.
  /// If q has the dim of keys: the dim by which bias and mask name q's positions.
  std::optional<Dim> queries{};
  std::optional<Tensor> offset{};        ///< i32, the position of the first query along `queries`,
                                         ///< or of each query; default: 0 if there is `queries`
  std::optional<std::int64_t> window{};  ///< keys further from the query's position are not seen
  std::optional<Tensor> bias{};          ///< added to the scaled products
  std::optional<Tensor> mask{};          ///< booleans: false hides a key from a query
  std::optional<AttentionBias> bias_of{};  ///< a bias or mask that is computed block by block
};

/// Returns Σ over keys of w v with w = softmax over keys of scale · (q · k) + bias.
///
/// q: [..., features]. k: [..., keys, features]. v: [..., keys, ...] without features of k. Result:
/// the dims of q without features, dims of k that q lacks, then dims that only v has. All dims are
/// named. keys may be ragged: padding of k and v never counts, whatever it holds. A query that sees
/// no key gets zeros. q may have the dim of keys too, as in attention of a sequence to itself.
///
/// bias, mask: dims of q and k without features, some or all. offset: a scalar or a number for each
/// entry, for queries that continue a sequence. With an offset or a window, blocks that no query
/// sees are not computed. Positions of queries are known if q has the dim of keys, with `causal` or
/// `queries`, or if the offset has all dims that only q has.
///
/// Streamed over blocks of keys in both directions: neither the result nor a gradient keeps a
/// tensor over queries and keys; second derivatives do. Results are exact up to rounding.
/// Throws ShapeError if a dim is missing, DTypeError unless q, k and v are floating and of one
/// dtype, ArgumentError for a block below 1, a negative window, or a window without positions of
/// queries.
/// Source: Dao et al. (2022), "FlashAttention"; Rabe & Staats (2021).
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const Dim& keys,
                 const Dim& features, const AttentionOptions& options = {});

}  // namespace reel
REEL_API_END
