#include "reel/frontend/layers/transformer_blocks.h"

#include "reel/core/base/errors.h"
#include "reel/core/functions/activations.h"
#include "reel/core/ops.h"
#include "reel/frontend/layers/initial_values.h"

namespace reel {
namespace {

Dim inner_of(const Dim& model, const TransformerOptions& options) {
  return options.inner ? *options.inner : Dim("inner", 4 * model.size());
}

MultiHeadAttention attention_of(const Dim& model, const TransformerOptions& options,
                                bool is_causal) {
  return MultiHeadAttention::init(model, options.heads,
                                  {.is_causal = is_causal,
                                   .key_heads = options.key_heads,
                                   .positions = options.positions,
                                   .capacity = options.capacity,
                                   .dtype = options.dtype});
}

FeedForward feed_forward_of(const Dim& model, const TransformerOptions& options,
                            ActivationFunction activation) {
  return FeedForward::init(
      model, inner_of(model, options),
      {.activation = activation, .dropout = options.dropout, .dtype = options.dtype});
}

/// Returns the parts that both blocks have.
template <class Block>
Block self_attending(const char* name, const Dim& model, const TransformerOptions& options,
                     bool is_causal) {
  detail::check_parameter_dim(name, "model", model);
  Block block;
  block.before_attention = block.before_inner = LayerNorm::init(model, {.dtype = options.dtype});
  block.attention = attention_of(model, options, is_causal);
  block.inner = feed_forward_of(model, options, options.activation);
  block.dropout.rate = options.dropout;
  return block;
}

}  // namespace

TransformerEncoderBlock TransformerEncoderBlock::init(const Dim& model,
                                                      const TransformerOptions& options) {
  return self_attending<TransformerEncoderBlock>("TransformerEncoderBlock", model, options, false);
}

Tensor TransformerEncoderBlock::operator()(const Tensor& given, const Dim& time) const {
  const Tensor x = given + detail::dropped(attention(before_attention(given), time), dropout);
  return x + detail::dropped(inner(before_inner(x)), dropout);
}

TransformerDecoderBlock TransformerDecoderBlock::init(const Dim& model,
                                                      const TransformerOptions& options) {
  auto block =
      self_attending<TransformerDecoderBlock>("TransformerDecoderBlock", model, options, true);
  if (options.memory) {
    block.before_memory = block.before_inner;
    block.from_memory = MultiHeadAttention::init(
        model, options.heads,
        {.key_heads = options.key_heads, .memory = options.memory, .dtype = options.dtype});
  }
  return block;
}

TransformerDecoderBlock::Memory TransformerDecoderBlock::of(const Tensor& x,
                                                            const Dim& time) const {
  if (!from_memory)
    throw ArgumentError(
        "TransformerDecoderBlock: the block has no memory; give init the option memory, the dim of "
        "its features");
  return from_memory->of(x, time);
}

/// The parts behind self-attention.
Tensor TransformerDecoderBlock::rest(const Tensor& given, const Tensor& attended,
                                     const std::optional<Memory>& memory) const {
  if (memory.has_value() != from_memory.has_value())
    throw ArgumentError(memory ? "TransformerDecoderBlock: a memory is given, but the block was "
                                 "made without the option memory"
                               : "TransformerDecoderBlock: the memory is missing; give the result "
                                 "of of(memory, time)");
  Tensor x = given + detail::dropped(attended, dropout);
  if (memory) x = x + detail::dropped((*from_memory)((*before_memory)(x), *memory), dropout);
  return x + detail::dropped(inner(before_inner(x)), dropout);
}

Tensor TransformerDecoderBlock::operator()(const Tensor& x, const Dim& time,
                                           const std::optional<Memory>& memory) const {
  return rest(x, attention(before_attention(x), time), memory);
}

std::pair<Tensor, TransformerDecoderBlock::State> TransformerDecoderBlock::operator()(
    const Tensor& x, const Dim& time, State state, const std::optional<Memory>& memory) const {
  auto [attended, next] = attention(before_attention(x), time, std::move(state));
  return {rest(x, attended, memory), std::move(next)};
}

std::pair<Tensor, TransformerDecoderBlock::State> TransformerDecoderBlock::operator()(
    const Tensor& x, State state, const std::optional<Memory>& memory) const {
  auto [attended, next] = attention(before_attention(x), std::move(state));
  return {rest(x, attended, memory), std::move(next)};
}

ConformerBlock ConformerBlock::init(const Dim& model, const TransformerOptions& options) {
  detail::check_parameter_dim("ConformerBlock", "model", model);
  const LayerNorm norm = LayerNorm::init(model, {.dtype = options.dtype});
  const LinearOptions linear{.dtype = options.dtype};
  ConformerBlock block;
  block.before_first = block.before_attention = block.before_conv = block.before_second =
      block.last = norm;
  block.first = feed_forward_of(model, options, ActivationFunction::silu);
  block.second = feed_forward_of(model, options, ActivationFunction::silu);
  block.attention = attention_of(model, options, false);
  block.gated = Linear::init(model, Dim("gated", 2 * model.size()), linear);
  block.out = Linear::init(model, model, linear);
  block.conv = DepthwiseConv::init({options.taps}, model,
                                   {.padding = WindowPadding::same, .dtype = options.dtype});
  block.norm = BatchNorm::init(model, {.dtype = options.dtype});
  block.dropout.rate = options.dropout;
  return block;
}

std::pair<Tensor, ConformerBlock::State> ConformerBlock::operator()(const Tensor& given,
                                                                    const Dim& time,
                                                                    const State& state) const {
  Tensor x = given + detail::dropped(first(before_first(given)), dropout) * 0.5;
  x = x + detail::dropped(attention(before_attention(x), time), dropout);
  const Tensor open = glu(gated(before_conv(x)), gated.out, conv.channel);
  const auto [normed, next] = norm(conv(open, time), state);
  x = x + detail::dropped(out(silu(normed)), dropout);
  x = x + detail::dropped(second(before_second(x)), dropout) * 0.5;
  return {last(x), next};
}

}  // namespace reel
