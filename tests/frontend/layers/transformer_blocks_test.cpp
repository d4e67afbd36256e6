// Feed-forward layers and blocks of Transformers and Conformers.
#include "reel/frontend/layers/transformer_blocks.h"

#include <cmath>
#include <limits>

#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN();

class TransformerBlocksTest : public InEveryMode {
 protected:
  TransformerBlocksTest() { manual_seed(41); }
  const Dim batch = Dim("batch", 3), model = Dim("model", 4);
  const Dim time = Dim("time", tensor({4, 0, 2}, {batch}));
  Tensor noisy() const { return where(mask(time), random_normal({batch, time, model}, f64), kNan); }
};

TEST_P(TransformerBlocksTest, FeedForwardPartsAreTheirFormulas) {
  const Dim inner("inner", 3);
  const Tensor x = random_normal({batch, model}, f64);
  const FeedForward plain =
      FeedForward::init(model, inner, {.activation = ActivationFunction::relu, .dtype = f64});
  const auto f = run([](const auto& layer, const Tensor& x) { return layer(x); });
  expect_all_close(f(plain, x),
                   matmul(relu(matmul(x, plain.wide.weight, model)), plain.narrow.weight, inner),
                   1e-13);
  const GatedFeedForward gated = GatedFeedForward::init(
      model, inner, {.activation = ActivationFunction::silu, .has_bias = false, .dtype = f64});
  const Tensor g = matmul(x, gated.gate.weight, model), w = matmul(x, gated.wide.weight, model);
  expect_all_close(
      run([](const GatedFeedForward& layer, const Tensor& x) { return layer(x); })(gated, x),
      matmul(g * sigmoid(g) * w, gated.narrow.weight, inner), 1e-13);
  const auto loss = [&](const GatedFeedForward& layer) { return sum(sin(layer(x))); };
  expect_gradient_of(loss, gated, run(grad(loss))(gated));
}

TEST_P(TransformerBlocksTest, EncodersGiveEachEntryItsOwnNumbers) {
  const TransformerEncoderBlock block = TransformerEncoderBlock::init(
      model, {.heads = 2, .positions = PositionEncoding::rotary, .dropout = 0, .dtype = f64});
  const Tensor x = noisy();
  const Tensor y = run([&](const TransformerEncoderBlock& block, const Tensor& x) {
    return block(x, time);
  })(block, x);
  EXPECT_EQ(y.dims(), (Dims{batch, time, model}));
  for (const int b : {0, 2}) {
    const Dim alone("alone", b == 0 ? 4 : 2);
    const Tensor of = slice(x.at(b), Axis(0), 0, alone.size(), alone);
    expect_all_close(slice(y.at(b), Axis(0), 0, alone.size(), alone), block(of, alone), 1e-12);
  }
  const auto loss = [&](const TransformerEncoderBlock& block) { return sum(sin(block(x, time))); };
  expect_gradient_of(loss, block, run(grad(loss))(block), 1e-6);
}

TEST_P(TransformerBlocksTest, DecodersAreCellsAndTakeMemories) {
  const Dim cache("cache", 5), heard("heard", tensor({3, 1, 2}, {batch})), sound("sound", 2);
  const Tensor x = noisy(), memory = random_normal({batch, heard, sound}, f64);
  const TransformerDecoderBlock lower = TransformerDecoderBlock::init(
      model, {.heads = 2, .capacity = cache, .dropout = 0, .dtype = f64});
  const auto stack = stack_cells(lower, lower);
  const Tensor steps = run([&](const Tensor& x) { return recur(stack, x, time).outputs; })(x);
  expect_all_close(mask_padding(transpose(steps, {batch, time, model})),
                   mask_padding(lower(lower(x, time), time)), 1e-12);
  const TransformerDecoderBlock block = TransformerDecoderBlock::init(
      model, {.heads = 2, .memory = sound, .dropout = 0, .dtype = f64});
  const auto both = run([&](const TransformerDecoderBlock& block, const Tensor& x) {
    const auto prepared = block.of(memory, heard);
    const auto scanned =
        scan(Scan{.spatial_dim = time,
                  .initial = block.initial_state({batch}, cache),
                  .xs = x,
                  .body = [&](const Tensor& x, const TransformerDecoderBlock::State& state) {
                    return block(x, state, prepared);
                  }});
    const auto chunk = block(x, time, block.initial_state({batch}, cache), prepared);
    return std::tuple{block(x, time, prepared), chunk.first, scanned.ys};
  })(block, x);
  const Tensor whole = mask_padding(std::get<0>(both));
  expect_all_close(mask_padding(std::get<1>(both)), whole, 1e-12);
  expect_all_close(mask_padding(transpose(std::get<2>(both), {batch, time, model})), whole, 1e-12);
}

TEST_P(TransformerBlocksTest, ConformersIgnorePadding) {
  ConformerBlock block = ConformerBlock::init(model, {.heads = 2,
                                                      .positions = PositionEncoding::transformer_xl,
                                                      .taps = 3,
                                                      .dropout = 0,
                                                      .dtype = f64});
  const Tensor x = noisy();
  const auto f = [&](const ConformerBlock& block, const Tensor& x) {
    return block(x, time, block.initial_state());
  };
  const auto [y, state] = run(f)(block, x);
  EXPECT_EQ(y.dims(), (Dims{batch, time, model}));
  const auto loss = [&](const ConformerBlock& block) { return sum(sin(f(block, x).first)); };
  expect_gradient_of(loss, block, run(grad(loss))(block), 1e-5);
  // With the averages, each entry has the numbers that it has alone.
  set_training(block, false);
  const Tensor still = run(f)(block, x).first;
  const Dim alone("alone", 2);
  const Tensor last = slice(x.at(2), Axis(0), 0, 2, alone);
  expect_all_close(slice(still.at(2), Axis(0), 0, 2, alone),
                   block(last, alone, block.initial_state()).first, 1e-12);
}

REEL_IN_EVERY_MODE(TransformerBlocksTest);

TEST(TransformerBlockErrorTest, NamesTheMemory) {
  const Dim model("model", 4), time("time", 2);
  const auto with =
      TransformerDecoderBlock::init(model, {.heads = 2, .memory = model, .dropout = 0});
  const auto alone = TransformerDecoderBlock::init(model, {.heads = 2, .dropout = 0});
  const Tensor x = zeros({time, model});
  EXPECT_EQ(message_of<ArgumentError>([&] { with(x, time); }),
            "TransformerDecoderBlock: the memory is missing; give the result of of(memory, time)");
  EXPECT_EQ(message_of<ArgumentError>([&] { alone(x, time, with.of(x, time)); }),
            "TransformerDecoderBlock: a memory is given, but the block was made without the option "
            "memory");
  EXPECT_EQ(message_of<ArgumentError>([&] { alone.of(x, time); }),
            "TransformerDecoderBlock: the block has no memory; give init the option memory, the "
            "dim of its features");
}

}  // namespace
}  // namespace reel
