// Second derivatives of attention layers, blocks of Transformers, and norms, over ragged time with
// NaN in the padding.
#include <algorithm>
#include <cmath>
#include <limits>

#include "reel/frontend/layers/group_norm.h"
#include "reel/frontend/layers/mamba_block.h"
#include "reel/frontend/layers/rms_norm.h"
#include "reel/frontend/layers/transformer_blocks.h"
#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

class SecondDerivativesTest : public InEveryMode {
 protected:
  SecondDerivativesTest() { manual_seed(61); }
  const Dim batch = Dim("batch", 3), model = Dim("model", 4);
  const Dim time = Dim("time", tensor({3, 0, 2}, {batch}));
  Tensor noisy() const {
    return where(mask(time), random_normal({batch, time, model}, f64),
                 std::numeric_limits<double>::quiet_NaN());
  }

  /// Expects that the gradient of a function of f's gradient agrees with central differences in
  /// each parameter of the layer. f: (layer, x) -> Tensor.
  template <class Layer, class F>
  void expect_second_derivatives(const Layer& layer, const F& f) const {
    const Tensor x = noisy();
    const auto steepness = [&](const Layer& layer) {
      const auto gradient = grad([&](const Layer& layer) { return sum(sin(f(layer, x))); })(layer);
      Tensor total = scalar(0.0, f64);
      for (const Tensor& leaf : tensors_of(flatten(gradient))) total += sum(sin(leaf + 0.5));
      return total;
    };
    const auto second = run(grad(steepness))(layer);
    double largest = 0;
    for (const Tensor& leaf : tensors_of(flatten(second)))
      for (const double value : values_of(leaf)) largest = std::max(largest, std::abs(value));
    EXPECT_GT(largest, 1e-3);
    expect_gradient_of(steepness, layer, second, 2e-5);
  }
  TransformerOptions options(PositionEncoding positions) const {
    return {.heads = 2,
            .positions = positions,
            .inner = Dim("inner", 3),
            .taps = 3,
            .dropout = 0,
            .dtype = f64};
  }
};
REEL_IN_EVERY_MODE(SecondDerivativesTest);

TEST_P(SecondDerivativesTest, AttentionHasThemWithEveryEncodingOfPositions) {
  for (const PositionEncoding positions :
       {PositionEncoding::none, PositionEncoding::rotary, PositionEncoding::alibi,
        PositionEncoding::relative, PositionEncoding::transformer_xl})
    for (const bool is_causal : {false, true}) {
      SCOPED_TRACE(str(static_cast<int>(positions), is_causal ? " causal" : ""));
      expect_second_derivatives(
          MultiHeadAttention::init(
              model, 2,
              {.is_causal = is_causal, .positions = positions, .max_distance = 1, .dtype = f64}),
          [&](const MultiHeadAttention& layer, const Tensor& x) { return layer(x, time); });
    }
}

TEST_P(SecondDerivativesTest, EncoderBlocksHaveThem) {
  expect_second_derivatives(
      TransformerEncoderBlock::init(model, options(PositionEncoding::rotary)),
      [&](const TransformerEncoderBlock& block, const Tensor& x) { return block(x, time); });
}

TEST_P(SecondDerivativesTest, DecoderBlocksWithAMemoryHaveThem) {
  const Dim heard("heard", tensor({2, 1, 1}, {batch}));
  const Tensor memory = random_normal({batch, heard, model}, f64);
  TransformerOptions with = options(PositionEncoding::none);
  with.memory = model;
  expect_second_derivatives(TransformerDecoderBlock::init(model, with),
                            [&](const TransformerDecoderBlock& block, const Tensor& x) {
                              return block(x, time, block.of(memory, heard));
                            });
}

TEST_P(SecondDerivativesTest, StepsOfDecoderBlocksHaveThem) {
  TransformerOptions with = options(PositionEncoding::relative);
  with.capacity = Dim("cache", 3);
  expect_second_derivatives(TransformerDecoderBlock::init(model, with),
                            [&](const TransformerDecoderBlock& block, const Tensor& x) {
                              return recur(block, x, time).outputs;
                            });
}

TEST_P(SecondDerivativesTest, ConformerBlocksHaveThem) {
  expect_second_derivatives(ConformerBlock::init(model, options(PositionEncoding::transformer_xl)),
                            [&](const ConformerBlock& block, const Tensor& x) {
                              return block(x, time, block.initial_state()).first;
                            });
}

TEST_P(SecondDerivativesTest, NormsHaveThem) {
  using Norms = std::pair<GroupNorm, RmsNorm>;
  GroupNorm group = GroupNorm::init(2, model, {.epsilon = 0.1, .dtype = f64});
  RmsNorm rms = RmsNorm::init(model, {.epsilon = 0.1, .dtype = f64});
  group.scale = random_normal({model}, f64);
  rms.scale = random_normal({model}, f64);
  expect_second_derivatives(Norms{group, rms}, [&](const Norms& norms, const Tensor& x) {
    return norms.first(norms.second(x), {time}) * x;
  });
}

TEST_P(SecondDerivativesTest, GatedFeedForwardPartsHaveThem) {
  expect_second_derivatives(
      GatedFeedForward::init(model, Dim("inner", 3),
                             {.activation = ActivationFunction::silu, .dtype = f64}),
      [](const GatedFeedForward& layer, const Tensor& x) { return layer(x); });
}

TEST_P(SecondDerivativesTest, MambaBlocksHaveThem) {
  expect_second_derivatives(
      MambaBlock::init(model, {.expansion = 1, .states = 2, .rank = 1, .taps = 2, .dtype = f64}),
      [&](const MambaBlock& block, const Tensor& x) { return block(x, time); });
}

}  // namespace
}  // namespace reel
