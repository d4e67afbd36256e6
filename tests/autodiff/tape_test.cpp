// RecordingTape: the values that it keeps, and the order in which contributions are added.
#include "reel/autodiff/tape.h"

#include <gtest/gtest.h>

#include "reel/core/ops.h"
#include "reel/reel.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

TEST(RecordingTapeTest, RecordsOnlyOpsThatDependOnWatchedTensors) {
  RecordingTape tape;
  const Tensor x = scalar(2.0), other = scalar(3.0);
  tape.watch(x);
  exp(other);
  EXPECT_EQ(tape.size(), 0u);
  exp(x);
  EXPECT_EQ(tape.size(), 1u);
}

TEST(RecordingTapeTest, AnInputThatTheVjpDoesNotReadIsNoResidual) {
  RecordingTape tape;
  Tensor x = ones({1000});
  tape.watch(x);
  const Tensor y = tanh(x);  // reads its output
  EXPECT_TRUE(x.ref().unique());
  EXPECT_FALSE(y.ref().unique());
}

TEST(RecordingTapeTest, AnInputThatOnlyTheGradientOfAnotherReadsIsNoResidual) {
  RecordingTape tape;
  Tensor x = ones({1000}), scale = ones({1000});
  tape.watch(x);
  const Tensor y = x * scale, z = matmul(x, scale), q = x / scale;
  EXPECT_TRUE(x.ref().unique());
  EXPECT_FALSE(scale.ref().unique());
  EXPECT_TRUE(q.ref().unique());
  tape.watch(scale);
  const Tensor w = x * scale;
  EXPECT_FALSE(x.ref().unique());
}

TEST(RecordingTapeTest, TellsTensorsApartThatWereMadeBeforeIt) {
  Tensors weights;
  for (int i = 0; i < 40; ++i) weights.push_back(scalar(1.0 + i));
  RecordingTape tape;
  for (int i = 0; i < 40; i += 3) tape.watch(weights[static_cast<std::size_t>(i)]);
  Tensor sum = scalar(0.0);
  for (int round = 0; round < 2; ++round)
    for (const Tensor& weight : weights) sum = sum + weight * weight;
  const Tensors gradient = tape.gradient({sum}, {Tensor()}, weights);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    ASSERT_EQ(gradient[i].is_defined(), i % 3 == 0) << i;
    if (i % 3 == 0) {
      EXPECT_EQ(gradient[i].item<float>(), 4 * weights[i].item<float>()) << i;
    }
  }
}

TEST(RecordingTapeTest, RecordsNoMoreOnceItsGradientWasTaken) {
  RecordingTape tape, persistent(true);
  const Tensor x = scalar(2.0);
  for (RecordingTape* each : {&tape, &persistent}) {
    each->watch(x);
    const Tensor y = exp(x);
    each->gradient({y}, {Tensor()}, {x});
  }
  const std::size_t before = persistent.size();
  exp(x);
  EXPECT_EQ(tape.size(), 0u);
  EXPECT_EQ(persistent.size(), before + 1);
}

TEST(RecordingTapeTest, LetsGoWhileItWalks) {
  RecordingTape tape;
  const Tensor x = ones({1000});
  tape.watch(x);
  const Tensor y = tanh(x);
  tape.gradient({sum(y)}, {Tensor()}, {x});
  EXPECT_TRUE(y.ref().unique());
}

TEST(RecordingTapeTest, NoPathIsAnEmptyTensor) {
  RecordingTape tape;
  const Tensor x = scalar(2.0), y = scalar(3.0);
  tape.watch(x);
  tape.watch(y);
  EXPECT_FALSE(tape.gradient({x * x}, {Tensor()}, {y})[0].is_defined());
}

TEST(RecordingTapeTest, AddsUpAnIterationsContributionsFirst) {
  // In f32 the order shows: in a trace, the gradient of a capture is a sum of one term per
  // iteration.
  const auto f = [](Tensor w) {
    auto [i, y] = while_loop([](Tensor i, Tensor) { return i < 7; },
                             [&](Tensor i, Tensor y) {
                               return std::tuple{i + 1, y * 0.7 + w * 0.3 + tanh(w * y)};
                             },
                             std::tuple{0, scalar(0.1)});
    return y * w + square(w);
  };
  expect_same_bits(grad(f)(scalar(1.3)), jit(grad(f))(scalar(1.3)));
}

}  // namespace
}  // namespace reel
