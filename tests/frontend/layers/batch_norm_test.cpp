// BatchNorm: numbers of plain loops, ragged batches, the state, sums over ranks.
#include "reel/frontend/layers/batch_norm.h"

#include <cmath>
#include <limits>

#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN();

class BatchNormTest : public InEveryMode {
 protected:
  BatchNormTest() { manual_seed(31); }
  const Dim batch = Dim("batch", 3), channel = Dim("channel", 2);
  const Dim time = Dim("time", tensor({3, 0, 2}, {batch}));
  BatchNorm layer_of(double epsilon = 0.1) const {
    BatchNorm layer =
        BatchNorm::init(channel, {.momentum = 0.25, .epsilon = epsilon, .dtype = f64});
    layer.scale = tensor({2.0, 3.0}, {channel}, f64);
    layer.bias = tensor({-1.0, 1.0}, {channel}, f64);
    return layer;
  }
  Tensor noisy() const {
    return where(mask(time), random_normal({batch, time, channel}, f64), kNan);
  }
};

TEST_P(BatchNormTest, ElementsBehindTheEndDoNotCount) {
  const BatchNorm layer = layer_of();
  const Tensor x = noisy();
  const BatchNorm::State state{tensor({1.0, 2.0}, {channel}, f64),
                               tensor({3.0, 4.0}, {channel}, f64)};
  const auto [y, next] =
      run([&](const BatchNorm& layer, const BatchNorm::State& state, const Tensor& x) {
        return layer(x, state, {batch, time});
      })(layer, state, x);
  EXPECT_EQ(y.type(), x.type());
  const std::vector<double> in = values_of(x);
  std::vector<double> expected(in.size(), 0.0), means, variances;
  for (std::size_t c = 0; c < 2; ++c) {
    std::vector<std::size_t> at;
    for (std::size_t b = 0; b < 3; ++b)
      for (std::size_t t = 0; t < (b == 0 ? 3u : b == 1 ? 0u : 2u); ++t)
        at.push_back((b * 3 + t) * 2 + c);
    double sum = 0, squares = 0;
    for (const std::size_t i : at) sum += in[i];
    const double mean = sum / 5;
    for (const std::size_t i : at) squares += (in[i] - mean) * (in[i] - mean);
    for (const std::size_t i : at)
      expected[i] = (in[i] - mean) / std::sqrt(squares / 5 + 0.1) * (c ? 3 : 2) + (c ? 1 : -1);
    means.push_back(0.75 * (c ? 2 : 1) + 0.25 * mean);
    variances.push_back(0.75 * (c ? 4 : 3) + 0.25 * squares / 4);  // unbiased
  }
  expect_values(mask_padding(y), expected, 1e-12);
  expect_values(next.mean, means, 1e-12);
  expect_values(next.variance, variances, 1e-12);
}

TEST_P(BatchNormTest, GradientsAreDerivativesAndLeaveTheStateAlone) {
  const BatchNorm layer = layer_of();
  const Tensor x = noisy();
  using In = std::pair<BatchNorm, Tensor>;
  const auto loss = [&](const In& in) {
    return sum(sin(in.first(in.second, in.first.initial_state()).first));
  };
  const In clean{layer, mask_padding(x)};
  In gradient = run(grad(loss))(In{layer, x});
  gradient.second = mask_padding(gradient.second);
  expect_gradient_of(loss, clean, gradient);
  const auto of_state = [&](const Tensor& x) {
    const auto next = layer(x, layer.initial_state()).second;
    return sum(next.mean) + sum(next.variance);
  };
  expect_all_close(mask_padding(run(grad(of_state))(x)), zeros_like(x), 0);
  const auto slope = [&](const Tensor& x) {
    return sum(square(mask_padding(grad([&](const Tensor& x) { return loss(In{layer, x}); })(x))));
  };
  expect_gradient_of(slope, mask_padding(x), mask_padding(run(grad(slope))(x)), 1e-6);
}

TEST_P(BatchNormTest, EvaluationUsesTheStateAndReturnsIt) {
  BatchNorm layer = layer_of(0);
  set_training(layer, false);
  const BatchNorm::State state{tensor({1.0, 2.0}, {channel}, f64),
                               tensor({4.0, 9.0}, {channel}, f64)};
  const Tensor x = tensor({{3.0, 5.0}, {1.0, 2.0}, {0.0, 0.0}}, {batch, channel}, f64);
  const auto [y, next] = run([](const BatchNorm& layer, const BatchNorm::State& state,
                                const Tensor& x) { return layer(x, state); })(layer, state, x);
  expect_values(y, {1, 4, -1, 1, -2, -1}, 1e-14);
  expect_same_bits(next.mean, state.mean);
  expect_same_bits(next.variance, state.variance);
}

TEST_P(BatchNormTest, NoElementLeavesTheState) {
  const BatchNorm layer = layer_of();
  const Dim none("none", tensor({0, 0, 0}, {batch}));
  const BatchNorm::State state{tensor({1.0, 2.0}, {channel}, f64),
                               tensor({4.0, 9.0}, {channel}, f64)};
  const Tensor x = zeros({batch, none, channel}, f64);
  const auto next = run([](const BatchNorm& layer, const BatchNorm::State& state, const Tensor& x) {
    return layer(x, state).second;
  })(layer, state, x);
  expect_same_bits(next.mean, state.mean);
  expect_same_bits(next.variance, state.variance);
}

TEST_P(BatchNormTest, TheStateGoesThroughALoop) {
  const BatchNorm layer = layer_of();
  const Dim steps("steps", 4);
  const Tensor x = random_normal({steps, batch, channel}, f64);
  const auto f = [&](const Tensor& x) {
    return scan(Scan{
        .spatial_dim = steps,
        .initial = layer.initial_state(),
        .xs = x,
        .body = [&](const Tensor& x, const BatchNorm::State& state) { return layer(x, state); }});
  };
  BatchNorm::State state = layer.initial_state();
  for (int i = 0; i < 4; ++i) state = layer(x.at(i), state).second;
  const auto last = run([&](const Tensor& x) { return f(x).state; })(x);
  expect_all_close(last.mean, state.mean, 1e-13);
  expect_all_close(last.variance, state.variance, 1e-13);
}

TEST_P(BatchNormTest, SumsOverRanksGiveTheNumbersOfTheWholeBatch) {
  // Two ranks with equal batches: every sum is doubled.
  const BatchNorm layer = layer_of();
  const Tensor x = random_normal({batch, channel}, f64);
  const Dim both("both", 6);
  const Tensor whole = concat({x, x}, batch, both);
  const auto doubled = [](const Tensors& sums) {
    Tensors result;
    for (const Tensor& of : sums) result.push_back(of * 2);
    return result;
  };
  const auto [y, next] =
      run([&](const Tensor& x) { return layer(x, layer.initial_state(), {batch}, doubled); })(x);
  const auto [expected, expected_next] = layer(whole, layer.initial_state());
  expect_all_close(y, slice(expected, both, 0, 3, batch), 1e-13);
  expect_all_close(next.variance, expected_next.variance, 1e-13);
}

REEL_IN_EVERY_MODE(BatchNormTest);

TEST(BatchNormErrorTest, NamesTheDim) {
  const Dim batch("batch", 2), time("time", 3), channel("channel", 2);
  const BatchNorm layer = BatchNorm::init(channel);
  EXPECT_EQ(message_of<ShapeError>([&] {
              layer(zeros({batch, time, channel}), layer.initial_state(), {time});
            }),
            "BatchNorm: over lacks batch=2 of x f32[batch=2,time=3,channel=2]; list all dims "
            "besides channel=2, or none");
  EXPECT_EQ(message_of<ArgumentError>([&] { BatchNorm::init(channel, {.momentum = 2}); }),
            "BatchNorm: momentum must be in [0, 1], got 2");
}

}  // namespace
}  // namespace reel
