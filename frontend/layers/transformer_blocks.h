// frontend/layers/transformer_blocks.h — blocks of Transformers and Conformers.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "reel/core/base/visibility.h"
#include "reel/core/types/dim.h"
#include "reel/core/types/dtype.h"
#include "reel/core/types/tensor.h"
#include "reel/frontend/layers/batch_norm.h"
#include "reel/frontend/layers/conv.h"
#include "reel/frontend/layers/dropout.h"
#include "reel/frontend/layers/feed_forward.h"
#include "reel/frontend/layers/layer_norm.h"
#include "reel/frontend/layers/linear.h"
#include "reel/frontend/layers/multi_head_attention.h"

REEL_API_BEGIN
namespace reel {

/// Options of TransformerEncoderBlock::init, TransformerDecoderBlock::init and
/// ConformerBlock::init.
struct TransformerOptions {
  std::int64_t heads = 4;                               ///< of attention
  std::int64_t key_heads = 0;                           ///< as for MultiHeadAttention
  PositionEncoding positions = PositionEncoding::none;  ///< of self-attention
  std::optional<Dim> inner{};  ///< of the feed-forward part; default: 4·model
  ActivationFunction activation = ActivationFunction::gelu;  ///< of the feed-forward part
  std::optional<Dim> memory{};    ///< decoder: features of the memory; default: no memory
  std::optional<Dim> capacity{};  ///< decoder: positions of initial_state(dims)
  std::int64_t taps = 31;         ///< Conformer: of the convolution
  double dropout = 0.1;           ///< rate behind each part
  DType dtype = f32;              ///< of the parameters
};

/// x += attention(norm(x)), x += feed_forward(norm(x)): a block of an encoder, with the norms in
/// front of the parts. Source: Vaswani et al. (2017), section 3.1; norms: Xiong et al. (2020).
struct TransformerEncoderBlock {
  LayerNorm before_attention, before_inner;  ///< in front of the parts
  MultiHeadAttention attention;              ///< from all positions to all
  FeedForward inner;                         ///< of each position
  Dropout dropout;                           ///< behind each part

  /// Returns a block, and throws as its layers do.
  static TransformerEncoderBlock init(const Dim& model, const TransformerOptions& options = {});
  /// x: [..., time, model] -> the same dims.
  Tensor operator()(const Tensor& x, const Dim& time) const;
};

/// x += attention(norm(x)) to earlier positions, x += attention(norm(x)) to a memory, if there is
/// one, x += feed_forward(norm(x)): a block of a decoder. Without a memory it is a cell, for recur
/// and stack_cells. Steps and chunks give the numbers of the whole sequence up to rounding.
struct TransformerDecoderBlock {
  using State = MultiHeadAttention::State;    ///< the cache of keys and values
  using Memory = MultiHeadAttention::Memory;  ///< keys and values of an encoder's outputs

  LayerNorm before_attention, before_inner;       ///< in front of the parts
  MultiHeadAttention attention;                   ///< to earlier positions
  FeedForward inner;                              ///< of each position
  std::optional<LayerNorm> before_memory;         ///< present if there is a memory
  std::optional<MultiHeadAttention> from_memory;  ///< present if there is a memory
  Dropout dropout;                                ///< behind each part

  /// Returns a block, and throws as its layers do.
  static TransformerDecoderBlock init(const Dim& model, const TransformerOptions& options = {});

  /// Return the dims of x and of y.
  const Dim& in_dim() const { return attention.model; }
  const Dim& out_dim() const { return attention.model; }
  /// Returns an empty cache, as MultiHeadAttention does.
  State initial_state(const Dims& dims, const Dim& positions) const {
    return attention.initial_state(dims, positions);
  }
  State initial_state(const Dims& dims) const { return attention.initial_state(dims); }
  /// Returns the projected memory. Throws ArgumentError if the block has none.
  Memory of(const Tensor& x, const Dim& time) const;

  /// Run a whole sequence, a chunk and one time step, as MultiHeadAttention does. Throw
  /// ArgumentError if the memory is missing, or the block has none.
  Tensor operator()(const Tensor& x, const Dim& time,
                    const std::optional<Memory>& memory = {}) const;
  std::pair<Tensor, State> operator()(const Tensor& x, const Dim& time, State state,
                                      const std::optional<Memory>& memory = {}) const;
  std::pair<Tensor, State> operator()(const Tensor& x, State state,
                                      const std::optional<Memory>& memory = {}) const;

 private:
  Tensor rest(const Tensor& x, const Tensor& attended, const std::optional<Memory>& memory) const;
};

/// A block of a Conformer: half a feed-forward part, attention, a convolution, half a feed-forward
/// part, each added to x, and a norm. The averages of the convolution's BatchNorm are the state.
///
/// convolution: norm, linear to twice the features, glu, depthwise convolution, BatchNorm, silu,
/// linear. Source: Gulati et al. (2020), section 2.
struct ConformerBlock {
  using State = BatchNorm::State;  ///< averages over batches

  LayerNorm before_first, before_attention, before_conv, before_second, last;  ///< norms
  FeedForward first, second;     ///< the halves, with silu
  MultiHeadAttention attention;  ///< from all positions to all
  Linear gated, out;             ///< around the convolution
  DepthwiseConv conv;            ///< over time
  BatchNorm norm;                ///< behind the convolution
  Dropout dropout;               ///< behind each part

  /// Returns a block, and throws as its layers do. options.activation is not used; positions of the
  /// paper: PositionEncoding::transformer_xl.
  static ConformerBlock init(const Dim& model, const TransformerOptions& options = {});
  /// Returns the averages that a new BatchNorm has.
  State initial_state() const { return norm.initial_state(); }
  /// x: [..., time, model] -> {y: the same dims, the next state}.
  std::pair<Tensor, State> operator()(const Tensor& x, const Dim& time, const State& state) const;
};

}  // namespace reel
REEL_API_END
