// Options of cross_entropy that weight its terms, further losses, and metrics.
#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

class WeightedLossesTest : public InEveryMode {};

/// -log softmax of each class for one row of logits.
std::vector<double> losses_of(const std::vector<double>& logits) {
  double all = 0;
  for (const double x : logits) all += std::exp(x);
  std::vector<double> result;
  for (const double x : logits) result.push_back(std::log(all) - x);
  return result;
}

TEST_P(WeightedLossesTest, CrossEntropyIgnoresWeighsAndSmooths) {
  const Dim batch("batch", 3), classes("classes", 3);
  const Tensor logits =
      tensor({{1.0, 2.0, 0.5}, {0.0, -1.0, 3.0}, {9.0, 9.0, -9.0}}, {batch, classes}, f64);
  const Tensor targets = tensor({1, 2, -1}, {batch});
  const Tensor weights = tensor({0.5, 2.0, 3.0}, {classes}, f64);
  const auto a = losses_of({1.0, 2.0, 0.5}), b = losses_of({0.0, -1.0, 3.0});
  const auto loss = [&](const CrossEntropyOptions& options) {
    return run([&, options](const Tensor& x) -> Tensor {
      return cross_entropy(x, targets, classes, options);
    })(logits);
  };
  expect_values(loss({.ignore = -1}), {(a[1] + b[2]) / 2}, 1e-12);
  expect_values(loss({.ignore = -1, .class_weights = weights}), {(2 * a[1] + 3 * b[2]) / 5}, 1e-12);
  const auto even = [](const std::vector<double>& x) {
    return (0.5 * x[0] + 2 * x[1] + 3 * x[2]) / 3;
  };
  const double smooth = (0.9 * (2 * a[1] + 3 * b[2]) + 0.1 * (even(a) + even(b))) / 5;
  const CrossEntropyOptions all{.label_smoothing = 0.1, .ignore = -1, .class_weights = weights};
  expect_values(loss(all), {smooth}, 1e-12);
  const auto of_logits = [&](const Tensor& x) -> Tensor {
    return cross_entropy(x, targets, classes, all);
  };
  expect_gradient_of(of_logits, logits, run(grad(of_logits))(logits));
  expect_values(cross_entropy(logits, full({batch}, -1, i32), classes, {.ignore = -1}), {0});
}

TEST_P(WeightedLossesTest, ProbabilitiesMayHaveClassWeights) {
  const Tensor logits = tensor({{1.0, 2.0}, {0.0, -1.0}}, f64);
  const Tensor q = tensor({{0.25, 0.75}, {1.0, 0.0}}, f64), weights = tensor({2.0, 3.0}, f64);
  const auto a = losses_of({1.0, 2.0}), b = losses_of({0.0, -1.0});
  const auto f = [&](const Tensor& x) -> Tensor {
    return cross_entropy(x, q, 1, {.class_weights = weights});
  };
  expect_values(run(f)(logits), {(2 * 0.25 * a[0] + 3 * 0.75 * a[1] + 2 * b[0]) / 2}, 1e-12);
  expect_gradient_of(f, logits, run(grad(f))(logits));
}

TEST_P(WeightedLossesTest, AbsoluteAndHuberLosses) {
  const Tensor x = tensor({0.5, -3.0, 2.0}, f64), y = tensor({0.0, 0.0, 2.5}, f64);
  const auto absolute = [&](const Tensor& x) -> Tensor { return mean_absolute_error(x, y); };
  const auto huber = [&](const Tensor& x) -> Tensor { return huber_loss(x, y, 1.0); };
  expect_values(run(absolute)(x), {4.0 / 3}, 1e-12);
  expect_values(run(huber)(x), {(0.125 + 2.5 + 0.125) / 3}, 1e-12);
  expect_values(run(grad(absolute))(x), {1.0 / 3, -1.0 / 3, -1.0 / 3}, 1e-12);
  expect_values(run(grad(huber))(x), {0.5 / 3, -1.0 / 3, -0.5 / 3}, 1e-12);
}

TEST_P(WeightedLossesTest, KlDivergenceAgreesWithItsFormula) {
  const Tensor p = log(tensor({{0.25, 0.75}, {0.5, 0.5}}, f64)),
               q = log(tensor({{0.5, 0.5}, {0.5, 0.5}}, f64));
  const double first = 0.25 * std::log(0.5) + 0.75 * std::log(1.5);
  const auto f = [](const std::pair<Tensor, Tensor>& x) -> Tensor {
    return kl_divergence(x.first, x.second, 1);
  };
  expect_values(run(f)(std::pair{p, q}), {first / 2}, 1e-12);
  expect_gradient_of(f, std::pair{p, q}, run(grad(f))(std::pair{p, q}));
  const Tensor never = tensor({{0.0, -INFINITY}}, f64);
  expect_values(run(f)(std::pair{never, tensor({{0.0, 0.0}}, f64)}), {std::log(2.0)}, 1e-12);
}

TEST_P(WeightedLossesTest, MetricsOfRaggedBatchesAddUp) {
  const Dim batch("batch", 2), classes("classes", 2), time("time", tensor({2, 1}, {batch}));
  const Tensor logits =
      tensor({2.0, 0.0, 0.0, 1.0, 3.0, 0.0, NAN, INFINITY}, {batch, time, classes}, f64);
  const Tensor targets = tensor({0, 0, 1, 1}, {batch, time});
  const auto both = run([&](const Tensor& x) {
    return std::pair{accuracy(x, targets, classes), log_loss(x, targets, classes)};
  })(logits);
  expect_values(both.first.total, {1});
  expect_values(both.first.weight, {3});
  const double all = losses_of({2.0, 0.0})[0] + losses_of({0.0, 1.0})[0] + losses_of({3.0, 0.0})[1];
  expect_values(perplexity(both.second), {std::exp(all / 3)}, 1e-12);
  const Weighted twice = both.first + Weighted{scalar(3.0, f64), scalar(3.0, f64)};
  expect_values(twice.mean(), {4.0 / 6}, 1e-12);
  expect_values(accuracy(logits, targets, classes, 1).weight, {2});
}

TEST(WeightedLossesErrorTest, NamesTheOption) {
  const Tensor logits = zeros({2, 3});
  EXPECT_EQ(message_of<ArgumentError>([&] { cross_entropy(logits, logits, 1, {.ignore = 0}); }),
            "cross_entropy: ignore is for class indices, but targets are probabilities");
  EXPECT_EQ(message_of<ShapeError>(
                [&] { cross_entropy(logits, zeros({2}, i32), 1, {.class_weights = zeros({2})}); }),
            "cross_entropy: class_weights must have the dim of the classes, 3, got f32[2]");
  EXPECT_EQ(message_of<ArgumentError>([&] { huber_loss(logits, logits, 0); }),
            "huber_loss: delta must be positive, got 0");
}

REEL_IN_EVERY_MODE(WeightedLossesTest);

}  // namespace
}  // namespace reel
