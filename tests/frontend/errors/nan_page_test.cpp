// The programs of docs/nan.md: each runs here and does as the page says.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reel/reel.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

const auto decay = [](const Tensor& x) {
  return std::get<1>(while_loop([](const Tensor& i, const Tensor&) { return i < 1000; },
                                [](const Tensor& i, const Tensor& x) {
                                  return std::tuple{i + 1, log(x)};
                                },
                                std::tuple{scalar(0), x}, {.name = "decay"}));
};

TEST(NanPage, DetectNanNamesTheOp) {
  Tensor decayed;
  EXPECT_EQ(message_of<NumericsError>([&] {
              const DetectNan guard;
              decayed = decay(scalar(2.0));
            }),
            "log: its result, f32[], is nan; its operand is finite\n"
            "in iteration 2 of while_loop \"decay\"");
}

TEST(NanPage, CheckNumericsChecksTheGradient) {
  EXPECT_EQ(message_of<NumericsError>([] {
              const auto loss = [](const Tensor& x) { return sum(sqrt(check_numerics(x, "x"))); };
              return grad(loss)(tensor({4., 0.}));
            }),
            "check_numerics \"x\": its gradient, f32[2], is inf at [1]");
}

TEST(NanPage, AssertThatPrintsItsValues) {
  const Tensor variance = tensor({0.5, -0.1});
  EXPECT_EQ(message_of<AssertionError>(
                [&] { assert_that(variance > 0.0, "the variance is positive", variance); }),
            "assert_that: the variance is positive\nfalse at [1]\nvalue 0: f32[2] [ 0.5 -0.1]");
}

TEST(NanPage, WhereKeepsTheNanOfTheSideThatIsNotTaken) {
  const auto of_bad = [] {
    const auto bad = [](const Tensor& x) { return sum(where(x > 0.0, sqrt(x), 0.0)); };
    return grad(bad)(tensor({4., 0.}));  // {0.25, nan}
  };
  expect_values(of_bad(), {0.25, std::numeric_limits<double>::quiet_NaN()});
  const auto of_good = [] {
    const auto good = [](const Tensor& x) {
      const Tensor safe = where(x > 0.0, x, 1.0);
      return sum(where(x > 0.0, sqrt(safe), 0.0));
    };
    return grad(good)(tensor({4., 0.}));  // {0.25, 0}
  };
  expect_values(of_good(), {0.25, 0});
  const auto of_chosen = [] {
    const auto chosen = [](const Tensor& x) {
      return cond(
          x > 0.0, [&] { return sqrt(x); }, [&] { return x * 0.0; });
    };
    return grad(chosen)(scalar(0.0));  // 0
  };
  expect_values(of_chosen(), {0});
}

struct Model {
  Tensor weight;
};

Tensor error(const Model& model, const Tensor& x, const Tensor& y) {
  return mean_squared_error(x * model.weight, y);
}

TEST(NanPage, ABadStepIsSkipped) {
  const auto step = jit([](Model model, Adam<Model> optimiser, const Tensor& x, const Tensor& y) {
    const std::pair before{model, optimiser};
    const auto [loss, gradient] = value_and_grad(error)(model, x, y);
    optimiser.update(model, gradient);
    const Tensor is_good = isfinite(loss) && isfinite(global_norm(gradient));
    return std::pair{where_nested(is_good, std::pair{model, optimiser}, before), loss};
  });
  const Model model{tensor({1., 2.})};
  const Adam<Model> optimiser(model, {.learning_rate = 0.5});
  const auto [skipped, bad] = step(model, optimiser, tensor({std::nan(""), 1.}), tensor({0., 0.}));
  EXPECT_TRUE(std::isnan(bad.item<float>()));
  expect_values(skipped.first.weight, {1, 2});
  expect_values(skipped.second.step(), {0});
  const auto [next, good] = step(skipped.first, skipped.second, tensor({1., 1.}), tensor({0., 0.}));
  expect_values(next.first.weight, {0.5, 1.5}, 1e-6);
  expect_values(next.second.step(), {1});
}

/// The table of usual causes: the left side fails where the right side does not.
TEST(NanPage, RepairedFormulasAreFinite) {
  const Tensor large = tensor({300., 100.}), small = tensor({-200., 0.});
  EXPECT_TRUE(std::isinf(log(sum(exp(large))).item<float>()));
  expect_values(logsumexp(large), {300});
  EXPECT_TRUE(std::isinf(min(log(softmax(large, 0))).item<float>()));
  expect_values(log_softmax(large, 0), {0, -200});
  EXPECT_TRUE(std::isinf(min(log(sigmoid(small))).item<float>()));
  expect_values(-softplus(-small), {-200, -std::log(2.)}, 1e-6);
  EXPECT_TRUE(std::isinf(max(log(1.0 + exp(large))).item<float>()));
  expect_values(softplus(large), {300, 100});
  const auto root = [](const Tensor& x) { return sum(sqrt(x + 1e-12)); };
  EXPECT_TRUE(std::isfinite(grad(root)(scalar(0.0)).item<float>()));
}

}  // namespace
}  // namespace reel
