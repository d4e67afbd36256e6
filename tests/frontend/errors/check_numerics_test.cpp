// check_numerics: errors for NaN and infinities in values and their gradients, in every mode.
#include <limits>

#include "reel/tests/modes.h"

namespace reel {
namespace {

using CheckNumericsTest = InEveryMode;
REEL_IN_EVERY_MODE(CheckNumericsTest);

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

TEST_P(CheckNumericsTest, ReturnsFiniteValuesAndTheirGradients) {
  const auto f = [](const Tensor& x) { return sum(square(check_numerics(x, "x"))); };
  const auto [value, gradient] = run(value_and_grad(f))(tensor({1., 2., 3.}));
  expect_values(value, {14});
  expect_values(gradient, {2, 4, 6});
  const auto second = run([&](const Tensor& x) { return sum(grad(f)(x)); });
  expect_values(run(grad(second))(tensor({1., 2.})), {2, 2});
  expect_values(run([](const Tensor& x) { return check_numerics(x); })(tensor({1, 2})), {1, 2});
}

TEST_P(CheckNumericsTest, ErrorNamesTheFirstIndex) {
  const auto f = [](const Tensor& x) { return check_numerics(x * 2.0, "logits") + 1.0; };
  EXPECT_EQ(message_of<NumericsError>([&] {
              run(f)(tensor({{1., 2.}, {kNan, kInf}}));
            }),
            "check_numerics \"logits\": f32[2,2] is nan at [1, 0], the first of 2 such elements");
  EXPECT_EQ(message_of<NumericsError>([&] { run(f)(scalar(-kInf)); }),
            "check_numerics \"logits\": f32[] is -inf");
  const Dim batch("batch", 3);
  const auto unnamed = [](const Tensor& x) { return check_numerics(x); };
  EXPECT_EQ(message_of<NumericsError>([&] {
              run(unnamed)(tensor(std::vector<double>{1, 2, kInf}, {batch}, f64));
            }),
            "check_numerics: f64[batch=3] is inf at [batch=2]");
}

TEST_P(CheckNumericsTest, ChecksEvenIfTheResultIsNotRead) {
  const auto f = [](const Tensor& x) {
    check_numerics(log(x), "log x");
    return x + 1.0;
  };
  expect_values(run(f)(tensor({1., 2.})), {2, 3});
  EXPECT_EQ(message_of<NumericsError>([&] {
              run(f)(tensor({1., -2.}));
            }),
            "check_numerics \"log x\": f32[2] is nan at [1]");
}

TEST_P(CheckNumericsTest, ErrorNamesLoopAndIteration) {
  const auto f = [](const Tensor& x) {
    return std::get<1>(while_loop([](const Tensor& i, const Tensor&) { return i < 5; },
                                  [](const Tensor& i, const Tensor& x) {
                                    return std::tuple{i + 1, check_numerics(log(x), "x")};
                                  },
                                  std::tuple{scalar(0), x}, {.name = "logs"}));
  };
  EXPECT_EQ(message_of<NumericsError>([&] { run(f)(scalar(2.0)); }),
            "check_numerics \"x\": f32[] is nan\nin iteration 2 of while_loop \"logs\"");
}

TEST_P(CheckNumericsTest, AConditionThatDoesNotTakeTheBranchDoesNotCheck) {
  const auto f = [](const Tensor& x) {
    return cond(
        x > 0.0, [&] { return check_numerics(log(x), "log"); }, [&] { return x; });
  };
  expect_values(run(f)(scalar(-1.0)), {-1});
  expect_values(run(f)(scalar(1.0)), {0});
}

TEST_P(CheckNumericsTest, ChecksTheGradient) {
  const auto f = [](const Tensor& x) { return sum(sqrt(check_numerics(x, "x"))); };
  expect_values(run(grad(f))(tensor({4., 1.})), {0.25, 0.5});
  EXPECT_EQ(message_of<NumericsError>([&] {
              run(grad(f))(tensor({4., 0.}));
            }),
            "check_numerics \"x\": its gradient, f32[2], is inf at [1]");
}

TEST_P(CheckNumericsTest, ChecksTheGradientInALoop) {
  const auto f = [](const Tensor& x) {
    return sum(scan(Scan{.initial = scalar(0.0),
                         .xs = x,
                         .body =
                             [](const Tensor& x, const Tensor& s) {
                               return std::pair{None{}, s + sqrt(check_numerics(x, "x"))};
                             },
                         .name = "roots"})
                   .state);
  };
  EXPECT_EQ(message_of<NumericsError>([&] {
              run(grad(f))(tensor({4., 0., 1.}));
            }),
            "check_numerics \"x\": its gradient, f32[], is inf\n"
            "in iteration 1 of the gradient of scan \"roots\"");
}

TEST_P(CheckNumericsTest, PaddingMayHoldAnything) {
  const Dim batch("batch", 2), time("time", tensor({1, 3}, {batch}));
  const Tensor x = tensor({{1., kNan, kInf}, {1., 2., 3.}}, {batch, time});
  const auto f = [](const Tensor& x) { return sum(square(check_numerics(x, "x"))); };
  const auto [value, gradient] = run(value_and_grad(f))(x);
  expect_values(value, {15});
  const Tensor wrong = tensor({{1., kNan, kInf}, {1., kInf, 3.}}, {batch, time});
  EXPECT_EQ(message_of<NumericsError>([&] { run(f)(wrong); }),
            "check_numerics \"x\": f32[batch=2,time[batch=2]] is inf at [batch=1, time=1]");
}

/// Entry 0 has finished and computes on the values of entry 1 when entry 1 overflows.
TEST_P(CheckNumericsTest, FinishedEntriesAreNeverNamed) {
  const Dim batch("batch", 3), time("time", tensor({1, 4, 2}, {batch}));
  const Tensor x = tensor({{1., 0., 0., 0.}, {1., 2., 0., 4.}, {5., 6., 0., 0.}}, {batch, time});
  const auto f = [&](const Tensor& x) {
    return scan(Scan{.spatial_dim = x.dim("time"),
                     .initial = zeros({x.dim("batch")}),
                     .xs = x,
                     .body =
                         [](const Tensor& x, const Tensor& s) {
                           const Tensor next = s + check_numerics(1.0 / x, "inverse");
                           return std::pair{None{}, next};
                         },
                     .name = "sums"})
        .state;
  };
  EXPECT_EQ(message_of<NumericsError>([&] { run(f)(x); }),
            "check_numerics \"inverse\": f32[batch=3] is inf at [batch=1]\n"
            "in iteration 2 of scan \"sums\"");
}

}  // namespace
}  // namespace reel
