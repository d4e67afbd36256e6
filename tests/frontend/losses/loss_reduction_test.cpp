// Losses of single entries and their sums, and quantile_loss.
#include "reel/frontend/losses/losses.h"
#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

class LossReductionTest : public InEveryMode {
 protected:
  const Dim batch{"batch", 2}, classes{"classes", 3};
  const Dim time{"time", tensor({3, 1}, {batch})};
  Tensor logits, others, targets;

  void SetUp() override {
    manual_seed(4);
    logits = random_normal({batch, time, classes}, f64);
    others = random_normal({batch, time, classes}, f64);
    targets = tensor({0, 2, 1, 1, 77, 77}, {batch, time});
  }
  Tensor dirty(const Tensor& x) const { return where(mask(time), x, scalar(NAN, f64)); }

  /// Expects that losses of entries are 0 in padding, and have the sum and the mean that the loss
  /// returns otherwise.
  template <class Loss>
  void expect_consistent(Loss loss, double count) const {
    const auto all = [&](const Tensor& a, const Tensor& b) {
      return std::tuple{loss(a, b, LossReduction::none), loss(a, b, LossReduction::sum),
                        loss(a, b, LossReduction::mean)};
    };
    const auto [each, total, mean] = run(all)(dirty(logits), dirty(others));
    double expected = 0;
    for (const double value : values_of(each)) expected += value;
    expect_same_bits(each, where(mask(time), each, scalar(0., f64)));
    expect_values(total, {expected}, 1e-13);
    expect_values(mean, {expected / count}, 1e-13);
    const auto weighted = [&](const Tensor& a) -> Tensor {
      const Tensor each = loss(a, others, LossReduction::none);
      return sum(each * cast(range(batch) + 1, f64));
    };
    const Tensor gradient = run(grad(weighted))(logits);
    expect_gradient_of(weighted, logits, gradient, 1e-7);
    expect_same_bits(run(grad(weighted))(dirty(logits)), gradient);
  }
};
REEL_IN_EVERY_MODE(LossReductionTest);

TEST_P(LossReductionTest, EntriesOfElementwiseLossesAddUp) {
  expect_consistent([](const Tensor& a, const Tensor& b,
                       LossReduction how) { return mean_squared_error(a, b, how); },
                    12);
  expect_consistent([](const Tensor& a, const Tensor& b,
                       LossReduction how) { return mean_absolute_error(a, b, how); },
                    12);
  expect_consistent([](const Tensor& a, const Tensor& b,
                       LossReduction how) { return huber_loss(a, b, 0.7, how); },
                    12);
  expect_consistent([](const Tensor& a, const Tensor& b,
                       LossReduction how) { return quantile_loss(a, b, 0.2, how); },
                    12);
  expect_consistent([](const Tensor& a, const Tensor& b,
                       LossReduction how) { return binary_cross_entropy(a, sigmoid(b), how); },
                    12);
}

TEST_P(LossReductionTest, EntriesOfDistributionsAddUp) {
  expect_consistent([&](const Tensor& a, const Tensor& b,
                        LossReduction how) { return kl_divergence(a, b, classes, how); },
                    4);
  for (const double smoothing : {0., 0.3}) {
    expect_consistent(
        [&](const Tensor& a, const Tensor&, LossReduction how) {
          return cross_entropy(a, targets, classes,
                               {.label_smoothing = smoothing, .reduction = how});
        },
        4);
    expect_consistent(
        [&](const Tensor& a, const Tensor& b, LossReduction how) {
          return cross_entropy(a, softmax(b, {classes}), classes,
                               {.label_smoothing = smoothing, .reduction = how});
        },
        4);
    // Three of the four targets count, with weights 0.5, 2 and 2.
    expect_consistent(
        [&](const Tensor& a, const Tensor&, LossReduction how) {
          return cross_entropy(a, targets, classes,
                               {.label_smoothing = smoothing,
                                .ignore = 2,
                                .class_weights = tensor({0.5, 2.0, 4.0}, {classes}, f64),
                                .reduction = how});
        },
        4.5);
  }
}

TEST_P(LossReductionTest, CrossEntropyOfAnIgnoredTargetIsZero) {
  const auto f = run([&](const Tensor& x) {
    return cross_entropy(x, targets, classes, {.ignore = 1, .reduction = LossReduction::none});
  });
  const Tensor each = f(dirty(logits));
  EXPECT_EQ(each.type(), TensorType(f64, {batch, time}));
  std::vector<double> expected;
  const double* x = logits.data<double>();
  for (const int entry : {0, 1}) {
    const double* at = x + entry * 3;
    expected.push_back(std::log(std::exp(at[0]) + std::exp(at[1]) + std::exp(at[2])) -
                       at[entry == 0 ? 0 : 2]);
  }
  expected.resize(6, 0);
  expect_values(each, expected, 1e-13);
}

TEST(QuantileLossTest, WeighsErrorsBelowAndAboveTheTarget) {
  const Tensor x = tensor({1.0, 4.0, 2.0}, {3}, f64), y = tensor({3.0, 3.0, 2.0}, {3}, f64);
  expect_values(quantile_loss(x, y, 0.75, LossReduction::none), {1.5, 0.25, 0}, 1e-15);
  expect_values(quantile_loss(x, y, 0.75), {1.75 / 3}, 1e-15);
  const auto loss = [&](const Tensor& x) -> Tensor {
    return quantile_loss(x, y, 0.75, LossReduction::sum);
  };
  expect_values(grad(loss)(x), {-0.75, 0.25, 0.25}, 1e-15);
  expect_values(quantile_loss(x, y, 0.5, LossReduction::none),
                values_of(mean_absolute_error(x, y, LossReduction::none) * 0.5));
}

TEST(QuantileLossTest, ErrorsNameTheQuantileAndTheTypes) {
  EXPECT_EQ(message_of<ArgumentError>([] { quantile_loss(zeros({2}), zeros({2}), 1); }),
            "quantile_loss: quantile must be between 0 and 1, got 1");
  EXPECT_EQ(message_of<ShapeError>([] { quantile_loss(zeros({2}), zeros({3}), 0.5); }),
            "quantile_loss: targets must have the dims of predictions: f32[2], targets f32[3]");
  expect_values(quantile_loss(zeros({0}), zeros({0}), 0.5), {0});
}

}  // namespace
}  // namespace reel
