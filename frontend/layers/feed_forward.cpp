#include "reel/frontend/layers/feed_forward.h"

#include "reel/core/functions/activations.h"
#include "reel/core/ops.h"

namespace reel {
namespace {

Tensor activated(const Tensor& x, ActivationFunction by) {
  switch (by) {
    case ActivationFunction::relu:
      return relu(x);
    case ActivationFunction::gelu:
      return gelu(x);
    case ActivationFunction::silu:
      return silu(x);
    case ActivationFunction::sigmoid:
      break;
  }
  return sigmoid(x);
}

}  // namespace

Tensor detail::dropped(const Tensor& x, const Dropout& dropout) {
  return dropout.rate > 0 ? dropout(x) : x;
}

FeedForward FeedForward::init(const Dim& model, const Dim& inner,
                              const FeedForwardOptions& options) {
  const LinearOptions linear{.has_bias = options.has_bias, .dtype = options.dtype};
  Linear wide = Linear::init(model, inner, linear);
  return {std::move(wide), Linear::init(inner, model, linear), options.activation,
          Dropout{options.dropout}};
}

Tensor FeedForward::operator()(const Tensor& x) const {
  return narrow(detail::dropped(activated(wide(x), activation), dropout));
}

GatedFeedForward GatedFeedForward::init(const Dim& model, const Dim& inner,
                                        const FeedForwardOptions& options) {
  const LinearOptions linear{.has_bias = options.has_bias, .dtype = options.dtype};
  Linear gate = Linear::init(model, inner, linear), wide = Linear::init(model, inner, linear);
  return {std::move(gate), std::move(wide), Linear::init(inner, model, linear), options.activation,
          Dropout{options.dropout}};
}

Tensor GatedFeedForward::operator()(const Tensor& x) const {
  const Tensor open = activated(gate(x), activation);
  return narrow(detail::dropped(open * wide(x), dropout));
}

}  // namespace reel
