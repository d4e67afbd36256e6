// frontend/layers/attention_stream.h — AttentionStream: attention and its gradient, by blocks of
// keys.
#pragma once

#include <optional>
#include <utility>

#include "reel/core/types/tensor.h"
#include "reel/frontend/layers/attention.h"
#include "reel/frontend/loops/loop_leaves.h"
#include "reel/frontend/tree/dim_lists.h"

namespace reel {

/// Returns a new dim of the size and name of another.
Dim twin(const Dim& dim);

/// One call of attention: the sizes and options that forward and backward share.
struct AttentionStream {
  /// The tensors with gradients.
  struct Inputs {
    Tensor q, k, v;
    std::optional<Tensor> bias;
    Tensors of_function;  ///< AttentionBias::inputs
  };

  Dim keys = 0, features = 0;
  DType dtype = f32;
  Dims rows{};   ///< of the products: dims of q and k without keys and features
  Dims extra{};  ///< dims that only v has
  bool is_causal = false;
  double scale = 1;
  Dim block = 0;
  std::optional<Tensor> positions{};  ///< of queries, if known and needed
  std::optional<std::int64_t> window{};
  std::optional<Tensor> mask{};
  std::function<Tensor(const Tensors& inputs, const AttentionBlock& at)> bias_of{};
  bool has_bias = false;            ///< among the inputs
  std::size_t function_inputs = 0;  ///< number of AttentionBias::inputs
  bool skips_blocks = false;        ///< true: blocks that no query sees are not computed

  /// Returns the result, and the logarithm of the denominator of each row.
  std::pair<Tensor, Tensor> forward(const Inputs& in) const;
  /// Returns the cotangents of the inputs, which tensors() lists. Weights are computed again, block
  /// by block.
  Tensors backward(const Inputs& in, const Tensor& y, const Tensor& log_total,
                   const Tensor& g) const;

  /// Returns the inputs as a list.
  static Tensors tensors(const Inputs& in);
  /// Returns the inputs that are first in a list.
  Inputs inputs_of(const Tensors& tensors) const;

 private:
  /// The keys of a block: their positions, and which of them exist.
  struct Keys {
    Tensor places, positions, exist;
  };
  std::pair<IterationCount, IterationCount> blocks() const;
  Keys keys_of(const Tensor& i) const;
  Tensor taken(const Tensor& x, const Keys& at) const;
  Tensor of_block(const Tensor& x, const Keys& at) const;
  AttentionBlock block_at(const Keys& at) const;
  Tensor term_of(const Tensors& inputs, const Keys& at) const;
  Tensor scores(const Inputs& in, const Tensor& k_block, const Keys& at) const;
  Tensors function_gradient(const Tensors& inputs, const Keys& at, const Tensor& g) const;
};

}  // namespace reel
