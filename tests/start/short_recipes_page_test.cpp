// The programs of "Short answers" in docs/recipes.md.
#include <cmath>
#include <tuple>

#include "reel/tests/check.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

TEST(ShortRecipesPage, OneStepIsRecordedForAllRates) {
  Tensor w = tensor({3.}), target = tensor({1.});
  Adam<Tensor> adam(w);
  const auto schedule = Schedule::warm_up(0.1, 5).then(Schedule::cosine(0.1, 0.001, 95));
  const auto step = jit([&](Tensor w, Adam<Tensor> adam, const Tensor& target) {
    adam.set_learning_rate(schedule(adam.step()));
    adam.update(w, grad([&](const Tensor& w) { return sum(square(w - target)); })(w));
    return std::pair{w, adam};
  });
  for (int i = 0; i < 100; ++i) std::tie(w, adam) = step(w, adam, target);
  EXPECT_EQ(step.trace_count(), 1);
  EXPECT_NEAR(w.item<float>(), 1, 0.2);
}

TEST(ShortRecipesPage, ARateOfTheProgramNeedsNoNewTrace) {
  Tensor w = tensor({3.});
  Adam<Tensor> adam(w);
  const auto step = jit([](Tensor w, Adam<Tensor> adam, const Tensor& rate) {
    adam.set_learning_rate(rate);
    adam.update(w, grad([](const Tensor& w) { return sum(square(w)); })(w));
    return std::pair{w, adam};
  });
  for (const double rate : {0.1, 0.01, 0.0}) std::tie(w, adam) = step(w, adam, scalar(rate, f64));
  EXPECT_EQ(step.trace_count(), 1);
}

TEST(ShortRecipesPage, MissingValuesCountNeitherInTheLossNorInItsGradient) {
  const Tensor x = tensor({1., std::nan(""), 3.});
  const auto loss = [](const Tensor& prediction, const Tensor& x) {
    const Tensor is_there = !isnan(x);
    const Tensor error = where(is_there, prediction - where(is_there, x, 0.0), 0.0);
    return sum(square(error)) / maximum(sum(cast(is_there, f32)), 1.0);
  };
  const auto [value, gradient] = value_and_grad(loss)(zeros({3}), x);
  expect_values(value, {5});
  expect_values(gradient, {-1, 0, -3});
}

TEST(ShortRecipesPage, ClassesHaveWeights) {
  const Dim batch("batch", 2), label("label", 2);
  const Tensor logits = zeros({batch, label}), targets = tensor({0, 1}, {batch});
  const Tensor weights = tensor({1., 3.}, {label});
  const Tensor loss = cross_entropy(logits, targets, label, {.class_weights = weights});
  EXPECT_NEAR(loss.item<float>(), std::log(2.0), 1e-6);
}

TEST(ShortRecipesPage, NoContractedDimIsTheOuterProduct) {
  const Dim row("row", 2), column("column", 3);
  const Tensor a = tensor({1., 2.}, {row}), b = tensor({1., 10., 100.}, {column});
  const Tensor table = matmul(a, b, Dims{});
  expect_values(table, {1, 10, 100, 2, 20, 200});
}

}  // namespace
}  // namespace reel
