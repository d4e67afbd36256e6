// Reductions: padding, edges, NaN, ties and errors. every_op_test.cpp has the requirements on all
// ops.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reel/core/graph/graph_builder.h"
#include "reel/core/ops/control/replay.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Lengths 3, 2, 1; 1 to 9 in rows, NaN beyond the ends.
struct Ragged {
  Dim batch{"batch", 3}, time{"time", tensor({3, 2, 1}, {batch})};
  Tensor x = tensor({1., 2., 3., 4., 5., kNaN, 7., kNaN, kNaN}, {batch, time});
};
/// Lengths 2, 0.
struct WithEmpty {
  Dim batch{"batch", 2}, time{"time", tensor({2, 0}, {batch})};
  Tensor x = tensor({1., 2., kNaN, kNaN}, {batch, time});
};

Axes time_of(const Tensor& x) { return x.dim("time"); }
Axes batch_of(const Tensor& x) { return x.dim("batch"); }

class ReductionsTest : public InEveryMode {};
REEL_IN_EVERY_MODE(ReductionsTest);

// ---- Padding ------------------------------------------------------------------------------------

TEST_P(ReductionsTest, SumSkipsPadding) {
  const Ragged r;
  expect_values(run([](Tensor x) { return sum(x, time_of(x)); })(r.x), {6, 9, 7});
  expect_values(run([](Tensor x) { return sum(x, batch_of(x)); })(r.x), {12, 7, 3});
  expect_values(run([](Tensor x) { return sum(x, {x.dim("time"), x.dim("batch")}); })(r.x), {22});
  expect_values(run([](Tensor x) { return sum(x); })(r.x), {22});
}

TEST_P(ReductionsTest, MeanCountsValidElementsOnly) {
  const Ragged r;
  expect_values(run([](Tensor x) { return mean(x, time_of(x)); })(r.x), {2, 4.5, 7});
  expect_values(run([](Tensor x) { return mean(x, batch_of(x)); })(r.x), {4, 3.5, 3});
  expect_values(run([](Tensor x) { return mean(x); })(r.x), {22. / 6});
}

TEST_P(ReductionsTest, MeanCountsOtherAxesAsOftenAsTheyAreLong) {
  const Ragged r;
  const Dim feature("feature", 2);
  const Tensor x = expand(r.x, {r.batch, feature, r.time});
  expect_values(run([](Tensor x) { return mean(x); })(x), {22. / 6});
  expect_values(run([](Tensor x) {
                  return mean(x, {x.dim("feature"), x.dim("time")});
                })(x),
                {2, 4.5, 7});
}

TEST_P(ReductionsTest, MeanOverTwoRaggedDims) {
  const Dim batch("batch", 2), rows("rows", tensor({2, 1}, {batch})),
      columns("columns", tensor({1, 2}, {batch}));
  const Tensor x = tensor({1, 9, 2, 9, 4, 6, 9, 9}, {batch, rows, columns}, f32);
  expect_values(run([](Tensor x) { return mean(x, {1, 2}); })(x), {1.5, 5});
  expect_values(run([](Tensor x) { return mean(x); })(x), {13. / 4});
}

TEST_P(ReductionsTest, LargestSkipsPadding) {
  const Ragged r;
  expect_values(run([](Tensor x) { return max(x, time_of(x)); })(r.x), {3, 5, 7});
  expect_values(run([](Tensor x) { return max(x); })(r.x), {7});
  expect_values(run([](Tensor x) { return argmax(x, x.dim("time")); })(r.x), {2, 1, 0});
  expect_values(
      run([](Tensor x) { return max(cast(x, i32) * 0 - 5, time_of(x)); })(mask_padding(r.x)),
      {-5, -5, -5});
}

TEST_P(ReductionsTest, PositionsInTheWholeTensor) {
  const auto largest = run([](Tensor x) { return argmax(x); });
  const auto smallest = run([](Tensor x) { return argmin(x); });
  const Tensor x = tensor({{1., 5., 2.}, {-3., 5., 0.}});
  for (const Tensor& of : {x, reshape(x, {Dim("row", 2), Dim("column", 3)}), cast(x, i32)}) {
    expect_values(largest(of), {1});
    expect_values(smallest(of), {3});
    EXPECT_EQ(str(largest(of).type()), "i32[]");
  }
  expect_values(largest(tensor({1., kNaN, kInf, kNaN})), {1});
  expect_values(largest(scalar(3.)), {0});
  expect_values(largest(zeros({0, 2})), {0});
  // Positions count padding, but never point into it.
  const Dim batch("batch", 3), time("time", tensor({0, 2, 1}, {batch}));
  const double lost = 99;
  const auto ragged = [&](double a, double b, double c) {
    return tensor({lost, -lost, a, b, c, kNaN}, {batch, time}, f64);
  };
  expect_values(largest(ragged(1, 3, 3)), {3});
  expect_values(smallest(ragged(1, 3, 0)), {4});
  expect_values(largest(ragged(-kInf, -kInf, -kInf)), {2});
  expect_values(largest(ragged(1, 2, kNaN)), {4});
  EXPECT_EQ(message_of<DTypeError>([] { return argmax(tensor({true})); }),
            "argmax: takes numbers, got boolean[1]; cast it, as in argmax(cast(x, i32))");
}

TEST_P(ReductionsTest, LogSumExpOfTheWholeTensor) {
  const auto whole = run([](Tensor x) { return logsumexp(x); });
  expect_values(whole(zeros({2, 3})), {std::log(6.)});
  expect_values(whole(zeros({0})), {-kInf});
  expect_values(whole(scalar(3.)), {3});
  const Ragged r;
  expect_all_close(whole(r.x), log(sum(exp(r.x))));
}

TEST_P(ReductionsTest, TruthSkipsPadding) {
  const Ragged r;
  expect_values(run([](Tensor x) { return any(x > 2.5, time_of(x)); })(r.x), {1, 1, 1});
  expect_values(run([](Tensor x) { return all(x < 3.5, time_of(x)); })(r.x), {1, 0, 0});
  expect_values(run([](Tensor x) { return any(!(x > 0.), time_of(x)); })(r.x), {0, 0, 0});
  expect_values(run([](Tensor x) { return all(x > 0.); })(r.x), {1});
}

TEST_P(ReductionsTest, SoftmaxGivesPaddingExactlyNothing) {
  const Ragged r;
  const Tensor y = run([](Tensor x) { return softmax(x, time_of(x)); })(r.x);
  expect_values(y, {0.090031, 0.244728, 0.665241, 0.268941, 0.731059, 0, 1, 0, 0});
  EXPECT_EQ(y.to_vector<float>()[5], 0);
  expect_values(run([](Tensor x) { return logsumexp(x, time_of(x)); })(r.x),
                {3.407606, 5.313262, 7});
  expect_values(run([](Tensor x) { return log_softmax(x, time_of(x)); })(r.x),
                {-2.407606, -1.407606, -0.407606, -1.313262, -0.313262, 0, 0, 0, 0});
}

TEST_P(ReductionsTest, SoftmaxOverBatchSkipsPaddingOfTime) {
  const double a = 1 / (1 + std::exp(3.)), b = 1 - a;
  const Dim batch("batch", 2), time("time", tensor({2, 1}, {batch}));
  const Tensor x = tensor({1., 2., 4., kNaN}, {batch, time});
  expect_values(run([](Tensor x) { return softmax(x, batch_of(x)); })(x), {a, 1, b, 0});
}

TEST_P(ReductionsTest, PaddingTakesNoGradient) {
  const Ragged r;
  const auto gradient = [&](auto f) { return run(grad([f](Tensor x) { return f(x); }))(r.x); };
  expect_values(gradient([](Tensor x) { return sum(x); }), {1, 1, 1, 1, 1, 0, 1, 0, 0});
  expect_values(gradient([](Tensor x) { return sum(mean(x, time_of(x))); }),
                {1. / 3, 1. / 3, 1. / 3, 0.5, 0.5, 0, 1, 0, 0});
  expect_values(gradient([](Tensor x) { return mean(x); }),
                {1. / 6, 1. / 6, 1. / 6, 1. / 6, 1. / 6, 0, 1. / 6, 0, 0});
  expect_values(gradient([](Tensor x) { return sum(max(x, time_of(x))); }),
                {0, 0, 1, 0, 1, 0, 1, 0, 0});
  expect_values(gradient([](Tensor x) { return sum(logsumexp(x, time_of(x))); }),
                {0.090031, 0.244728, 0.665241, 0.268941, 0.731059, 0, 1, 0, 0});
  expect_values(gradient([](Tensor x) {
                  return sum(square(softmax(x, time_of(x))), {x.dim("batch"), x.dim("time")});
                }),
                {-0.075718, -0.130105, 0.205823, -0.181715, 0.181715, 0, 0, 0, 0});
}

TEST_P(ReductionsTest, NaNInTheCotangentOfPaddingStaysThere) {
  // 0/0 in the padding makes the softmax's cotangent NaN there.
  const Ragged r;
  const Tensor w = mask_padding(r.x * 0 + 1.0);
  const Tensor g =
      run(grad([](Tensor x, Tensor w) { return sum(softmax(x, time_of(x)) / w); }))(r.x, w);
  expect_values(g, {0, 0, 0, 0, 0, 0, 0, 0, 0});
}

// ---- Nothing to reduce --------------------------------------------------------------------------

TEST_P(ReductionsTest, EmptyEntriesGiveNeutralValues) {
  const WithEmpty e;
  const auto of = [&](auto f) { return run([f](Tensor x) { return f(x, time_of(x)); })(e.x); };
  expect_values(of([](Tensor x, Axes t) { return sum(x, t); }), {3, 0});
  expect_values(of([](Tensor x, Axes t) { return mean(x, t); }), {1.5, 0});
  expect_values(of([](Tensor x, Axes t) { return max(x, t); }), {2, -kInf});
  expect_values(of([](Tensor x, Axes t) { return logsumexp(x, t); }), {2.313262, -kInf});
  expect_values(of([](Tensor x, Axes t) { return softmax(x, t); }), {0.268941, 0.731059, 0, 0});
  expect_values(of([](Tensor x, Axes t) { return log_softmax(x, t); }),
                {-1.313262, -0.313262, 0, 0});
  expect_values(of([](Tensor x, Axes t) { return any(x > 0., t); }), {1, 0});
  expect_values(of([](Tensor x, Axes t) { return all(x < 0., t); }), {0, 1});
  expect_values(run([](Tensor x) { return argmax(x, x.dim("time")); })(e.x), {1, 0});
}

TEST_P(ReductionsTest, EmptyEntriesHaveZeroGradients) {
  const WithEmpty e;
  const auto of = [&](auto f) {
    return run(grad([f](Tensor x) { return f(x, time_of(x)); }))(e.x);
  };
  expect_values(of([](Tensor x, Axes t) { return sum(mean(x, t)); }), {0.5, 0.5, 0, 0});
  expect_values(of([](Tensor x, Axes t) { return sum(max(x, t)); }), {0, 1, 0, 0});
  expect_values(of([](Tensor x, Axes t) { return sum(logsumexp(x, t)); }),
                {0.268941, 0.731059, 0, 0});
  expect_values(of([](Tensor x, Axes t) { return sum(square(logsumexp(x, t))); }),
                {2 * 2.313262 * 0.268941, 2 * 2.313262 * 0.731059, 0, 0});
  expect_values(of([](Tensor x, Axes t) { return sum(softmax(x, t)); }), {0, 0, 0, 0});
  expect_values(of([](Tensor x, Axes t) { return sum(log_softmax(x, t)); }),
                {0.462117, -0.462117, 0, 0});
}

TEST_P(ReductionsTest, RowsOfMinusInfinity) {
  const Tensor x = tensor({-kInf, -kInf, 0., -kInf}, {2, 2});
  expect_values(run([](Tensor x) { return softmax(x, 1); })(x), {0, 0, 1, 0});
  expect_values(run([](Tensor x) { return logsumexp(x, 1); })(x), {-kInf, 0});
  expect_values(run(grad([](Tensor x) { return sum(exp(logsumexp(x, 1))); }))(x), {0, 0, 1, 0});
  expect_values(run(grad([](Tensor x) { return sum(square(softmax(x, 1))); }))(x), {0, 0, 0, 0});
}

TEST_P(ReductionsTest, AxesWithoutElements) {
  const Tensor x = zeros({2, 0});
  expect_values(run([](Tensor x) { return sum(x, 1); })(x), {0, 0});
  expect_values(run([](Tensor x) { return mean(x, 1); })(x), {0, 0});
  expect_values(run([](Tensor x) { return max(x, 1); })(x), {-kInf, -kInf});
  expect_values(run([](Tensor x) { return max(cast(x, i32), 1); })(x),
                {-2147483648., -2147483648.});
  expect_values(run([](Tensor x) { return max(cast(x, i64), 1); })(x),
                {-9223372036854775808., -9223372036854775808.});
  expect_values(run([](Tensor x) { return logsumexp(x, 1); })(x), {-kInf, -kInf});
  expect_values(run([](Tensor x) { return argmax(x, 1); })(x), {0, 0});
  expect_values(run([](Tensor x) { return sum(x, 0); })(x), {});
  expect_values(run(grad([](Tensor x) { return sum(max(x, 1) * 0.) + mean(x); }))(x), {});
}

// ---- Axes ---------------------------------------------------------------------------------------

TEST_P(ReductionsTest, ReductionsTakeAnyAxes) {
  const Tensor x = reshape(range(24, f32), {2, 3, 4});
  expect_values(run([](Tensor x) { return sum(x, {0, 2}); })(x), {60, 92, 124});
  expect_values(run([](Tensor x) { return sum(x, {-1, 0}); })(x), {60, 92, 124});
  expect_values(run([](Tensor x) { return sum(x, 1); })(x), {12, 15, 18, 21, 48, 51, 54, 57});
  expect_values(run([](Tensor x) { return max(x, {0, 2}); })(x), {15, 19, 23});
  expect_values(run([](Tensor x) { return sum(x); })(x), {276});
  expect_values(run([](Tensor x) { return mean(x); })(x), {11.5});
  expect_values(run([](Tensor x) { return sum(softmax(x, {0, 2}), {0, 2}); })(x), {1, 1, 1});
  expect_values(run([](Tensor x) {
                  return logsumexp(x * 0., {0, 2});
                })(x),
                {std::log(8), std::log(8), std::log(8)});
  expect_values(run([](Tensor x) {
                  return softmax(x, {0, 2});
                })(x * 0.),
                std::vector<double>(24, 0.125));
  expect_values(run(grad([](Tensor x) {
                  return sum(square(sum(x, {0, 2})));
                }))(x),
                {120, 120, 120, 120, 184, 184, 184, 184, 248, 248, 248, 248,
                 120, 120, 120, 120, 184, 184, 184, 184, 248, 248, 248, 248});
}

TEST_P(ReductionsTest, ScalarsReduceToThemselves) {
  const Tensor x = scalar(3.0);
  expect_values(run([](Tensor x) { return sum(x); })(x), {3});
  expect_values(run([](Tensor x) { return mean(x); })(x), {3});
  expect_values(run([](Tensor x) { return max(x); })(x), {3});
}

TEST_P(ReductionsTest, GradientsOfPlainAxes) {
  const Tensor x = tensor({{1., 5., 5.}, {2., 0., 1.}});
  expect_values(run(grad([](Tensor x) { return sum(max(x, 1)); }))(x), {0, 0.5, 0.5, 1, 0, 0});
  expect_values(run(grad([](Tensor x) {
                  return sum(max(x, 0) * tensor({1., 2., 3.}));
                }))(x),
                {0, 2, 3, 1, 0, 0});
  expect_values(run(grad([](Tensor x) { return sum(square(mean(x, 1))); }))(x),
                {22. / 9, 22. / 9, 22. / 9, 2. / 3, 2. / 3, 2. / 3});
  expect_values(run(grad([](Tensor x) { return sum(square(mean(x, 0))); }))(x),
                {1.5, 2.5, 3, 1.5, 2.5, 3});
}

TEST_P(ReductionsTest, SecondDerivativesAreTheirFormulas) {
  const Tensor x = tensor({{1., 2.}, {3., 5.}}, {}, f64);
  const auto twice = [&](auto f) {
    return run(grad([f](Tensor x) {
      return sum(grad([f](Tensor x) { return f(x); })(x) * tensor({{1., 2.}, {3., 4.}}, {}, f64));
    }))(x);
  };
  // The gradient of a row's log Σ exp is p; its second derivative is diag(p) - p pᵀ.
  const double p = 1 / (1 + std::exp(1.)), q = 1 / (1 + std::exp(2.));
  expect_values(
      twice([](Tensor x) { return sum(logsumexp(x, 1)); }),
      {p * (1 - p) * (1 - 2), p * (1 - p) * (2 - 1), q * (1 - q) * (3 - 4), q * (1 - q) * (4 - 3)},
      1e-9);
  expect_values(twice([](Tensor x) { return sum(square(sum(x, 1))); }), {6, 6, 14, 14});
  expect_values(twice([](Tensor x) { return sum(square(max(x, 1))); }), {0, 4, 0, 8});
}

TEST_P(ReductionsTest, MinAndArgminMirrorMaxAndArgmax) {
  const Ragged r;
  expect_values(run([](Tensor x) { return min(x, time_of(x)); })(r.x), {1, 4, 7});
  expect_values(run([](Tensor x) { return min(x, batch_of(x)); })(r.x), {1, 2, 3});
  expect_values(run([](Tensor x) { return min(x); })(r.x), {1});
  expect_values(run([](Tensor x) { return argmin(x, x.dim("time")); })(r.x), {0, 0, 0});
  expect_values(run([](Tensor x) { return argmin(x * -1., x.dim("time")); })(r.x), {2, 1, 0});
  expect_values(run([](Tensor x) { return min(cast(x, i64) * 0 + 5000000000, time_of(x)); })(
                    mask_padding(r.x)),
                {5e9, 5e9, 5e9}, 0);
  const WithEmpty e;
  expect_values(run([](Tensor x) { return min(x, time_of(x)); })(e.x), {1, kInf});
  expect_values(run([](Tensor x) { return argmin(x, x.dim("time")); })(e.x), {0, 0});
  expect_values(run(grad([](Tensor x) { return sum(min(x, time_of(x))); }))(e.x), {1, 0, 0, 0});
  const Tensor ties = tensor({{5., 1., 1.}, {2., 0., 1.}});
  expect_values(run(grad([](Tensor x) { return sum(min(x, 1)); }))(ties), {0, 0.5, 0.5, 0, 1, 0});
  const Tensor none = zeros({2, 0});
  expect_values(run([](Tensor x) { return min(x, 1); })(none), {kInf, kInf});
  expect_values(run([](Tensor x) { return min(cast(x, i32), 1); })(none),
                {2147483647., 2147483647.});
  expect_values(run([](Tensor x) { return argmin(x, 1); })(none), {0, 0});
}

TEST_P(ReductionsTest, NaNThatWinsTakesTheGradient) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor x = tensor({{1., nan, 3.}, {4., 2., 4.}, {nan, 0., nan}}, {}, f64);
  const std::vector<double> expected{0, 1, 0, 0.5, 0, 0.5, 0.5, 0, 0.5};
  const auto largest = [](const Tensor& x) {
    return grad([](const Tensor& x) { return sum(max(x, 1)); })(x);
  };
  expect_values(run(largest)(x), expected);
  const auto smallest = [](const Tensor& x) {
    return grad([](const Tensor& x) { return sum(min(x, 1)); })(x);
  };
  expect_values(run(smallest)(-x), expected);
}

TEST_P(ReductionsTest, ProductsSkipPadding) {
  const Ragged r;
  expect_values(run([](Tensor x) { return prod(x, time_of(x)); })(r.x), {6, 20, 7});
  expect_values(run([](Tensor x) { return prod(x, batch_of(x)); })(r.x), {28, 10, 3});
  expect_values(run([](Tensor x) { return prod(x); })(r.x), {840});
  expect_values(run(grad([](Tensor x) { return sum(prod(x, time_of(x))); }))(r.x),
                {6, 3, 2, 5, 4, 0, 1, 0, 0});
  const WithEmpty e;
  expect_values(run([](Tensor x) { return prod(x, time_of(x)); })(e.x), {2, 1});
  expect_values(run([](Tensor x) { return prod(x, 1); })(zeros({2, 0})), {1, 1});
  expect_values(run([](Tensor x) { return prod(x); })(tensor({{2, 3}, {4, -5}})), {-120}, 0);
}

TEST_P(ReductionsTest, TheGradientOfAProductIsRightWithZeros) {
  const Tensor x = tensor({{2., 3., 4.}, {0., 3., 4.}, {0., 3., 0.}, {0., 0., 0.}});
  expect_values(run(grad([](Tensor x) { return sum(prod(x, 1)); }))(x),
                {12, 8, 6, 12, 0, 0, 0, 0, 0, 0, 0, 0});
  expect_values(run(grad([](Tensor x) { return sum(prod(x, 0)); }))(transpose(x, {1, 0})),
                {12, 12, 0, 0, 8, 0, 0, 0, 6, 0, 0, 0});
  expect_values(run(grad([](Tensor x) { return prod(x); }))(tensor({{2., 0.}, {3., 5.}})),
                {0, 30, 0, 0});
  // The mixed second derivatives of x y z are the third factor, here in rows weighted by 1, 10,
  // 100.
  const auto second = grad([](Tensor x) {
    return sum(grad([](Tensor x) { return sum(prod(x, 1)); })(x) * tensor({1., 10., 100.}));
  });
  expect_values(run(second)(x), {340, 204, 23, 340, 4, 3, 300, 0, 3, 0, 0, 0});
}

TEST_P(ReductionsTest, VarianceIsThatOfThePopulation) {
  const Tensor x = tensor({{1., 2., 3.}, {4., 4., 10.}}, {}, f64);
  expect_values(run([](Tensor x) { return variance(x, 1); })(x), {2. / 3, 8}, 1e-12);
  expect_values(run([](Tensor x) { return variance(x, 0); })(x), {2.25, 1, 12.25}, 1e-12);
  expect_values(run([](Tensor x) { return variance(x); })(x), {25. / 3}, 1e-12);
  expect_values(run(grad([](Tensor x) { return sum(variance(x, 1)); }))(x),
                {-2. / 3, 0, 2. / 3, -4. / 3, -4. / 3, 8. / 3}, 1e-12);
  const Ragged r;
  expect_values(run([](Tensor x) { return variance(x, time_of(x)); })(r.x), {2. / 3, 0.25, 0});
  expect_values(run([](Tensor x) { return variance(x, batch_of(x)); })(r.x), {6, 2.25, 0});
  expect_values(run(grad([](Tensor x) { return sum(variance(x, time_of(x))); }))(r.x),
                {-2. / 3, 0, 2. / 3, -0.5, 0.5, 0, 0, 0, 0});
  expect_values(run([](Tensor x) { return variance(x, time_of(x)); })(WithEmpty().x), {0.25, 0});
  // A large mean does not cost accuracy.
  expect_values(run([](Tensor x) { return variance(x); })(tensor({10001., 10002., 10003.})),
                {2. / 3});
}

TEST_P(ReductionsTest, KeptAxesHaveSizeOne) {
  const Tensor x = reshape(range(24, f32), {2, 3, 4});
  const auto kept = [&](auto f) { return run([f](Tensor x) { return f(x); })(x).type(); };
  EXPECT_EQ(kept([](Tensor x) { return sum(x, {0, 2}, Keep::yes); }), TensorType(f32, {1, 3, 1}));
  EXPECT_EQ(kept([](Tensor x) { return mean(x, 1, Keep::yes); }), TensorType(f32, {2, 1, 4}));
  EXPECT_EQ(kept([](Tensor x) { return max(x, -1, Keep::yes); }), TensorType(f32, {2, 3, 1}));
  EXPECT_EQ(kept([](Tensor x) { return min(x, -1, Keep::yes); }), TensorType(f32, {2, 3, 1}));
  EXPECT_EQ(kept([](Tensor x) { return prod(x, -1, Keep::yes); }), TensorType(f32, {2, 3, 1}));
  EXPECT_EQ(kept([](Tensor x) { return variance(x, -1, Keep::yes); }), TensorType(f32, {2, 3, 1}));
  EXPECT_EQ(kept([](Tensor x) { return logsumexp(x, 0, Keep::yes); }), TensorType(f32, {1, 3, 4}));
  EXPECT_EQ(kept([](Tensor x) { return argmax(x, 1, Keep::yes); }), TensorType(i32, {2, 1, 4}));
  EXPECT_EQ(kept([](Tensor x) { return argmin(x, 1, Keep::yes); }), TensorType(i32, {2, 1, 4}));
  EXPECT_EQ(kept([](Tensor x) { return any(x > 0, 1, Keep::yes); }),
            TensorType(boolean, {2, 1, 4}));
  EXPECT_EQ(kept([](Tensor x) { return all(x > 0, 1, Keep::yes); }),
            TensorType(boolean, {2, 1, 4}));
  expect_values(run(grad([](Tensor x) { return sum(square(x - mean(x, 1, Keep::yes))); }))(
                    tensor({{1., 3.}, {2., 8.}})),
                {-2, 2, -6, 6});
}

TEST_P(ReductionsTest, AnEmptyListOfAxesReducesNothing) {
  const Tensor x = tensor({{1., 2.}, {3., 4.}});
  expect_values(run([](Tensor x) { return sum(x, {}); })(x), {1, 2, 3, 4});
  expect_values(run([](Tensor x) { return mean(x, {}); })(x), {1, 2, 3, 4});
  expect_values(run([](Tensor x) { return max(x, {}, Keep::yes); })(x), {1, 2, 3, 4});
  expect_values(run([](Tensor x) { return prod(x, {}); })(x), {1, 2, 3, 4});
  expect_values(run([](Tensor x) { return variance(x, {}); })(x), {0, 0, 0, 0});
  expect_values(run([](Tensor x) { return logsumexp(x, {}); })(x), {1, 2, 3, 4});
  expect_values(run(grad([](Tensor x) { return sum(max(x, {}) * prod(x, {})); }))(x), {2, 4, 6, 8});
}

// ---- Errors -------------------------------------------------------------------------------------

/// Returns the result of fn, recorded for a matrix of unknown sizes, and run on x.
template <class Fn>
Tensor run_with_unknown_sizes(Fn fn, const Tensor& x) {
  Ref<Graph> graph;
  {
    GraphBuilder builder("f");
    ModeScope scope(builder.scope());
    const Tensor input = builder.add_input(TensorType(x.dtype(), {Dim::unknown(), Dim::unknown()}));
    graph = builder.finish({fn(input)});
  }
  verify(*graph, "recording");
  DimEnv env;
  return replay(*graph, {&x, 1}, env)[0];
}

TEST(ReductionsTypeTest, PlainSizesThatATraceDoesNotKnow) {
  const Tensor x = tensor({{1., 2., 4.}, {3., 3., 5.}}, {}, f64);
  const auto check = [&](auto f) {
    expect_same_bits(run_with_unknown_sizes(f, x), f(x));
    const auto gradient = grad([f](Tensor x) { return sum(square(f(x))); });
    expect_all_close(run_with_unknown_sizes(gradient, x), gradient(x), 1e-12);
  };
  for (int axis : {0, 1}) {
    check([axis](Tensor x) { return sum(x, axis); });
    check([axis](Tensor x) { return mean(x, axis); });
    check([axis](Tensor x) { return max(x, axis); });
    check([axis](Tensor x) { return min(x, axis, Keep::yes); });
    check([axis](Tensor x) { return prod(x, axis); });
    check([axis](Tensor x) { return variance(x, axis, Keep::yes); });
    check([axis](Tensor x) { return logsumexp(x, axis); });
    check([axis](Tensor x) { return softmax(x, axis); });
    check([axis](Tensor x) { return log_softmax(x, axis); });
  }
  check([](Tensor x) { return sum(x); });
  check([](Tensor x) { return mean(x); });
}

TEST(ReductionsErrorTest, DTypesThatAReductionDoesNotTake) {
  const Tensor integers = range(3), truth = tensor({true, false});
  EXPECT_EQ(message_of<DTypeError>([&] { return mean(integers); }),
            "mean: takes floats, got i32[3]; cast it, as in mean(cast(x, f32))");
  EXPECT_EQ(message_of<DTypeError>([&] { return sum(truth); }),
            "sum: takes numbers, got boolean[2]; cast it, as in sum(cast(x, i32))");
  EXPECT_EQ(message_of<DTypeError>([&] { return max(truth, 0); }),
            "max: takes numbers, got boolean[2]; use any");
  EXPECT_EQ(message_of<DTypeError>([&] { return any(integers); }),
            "any: takes booleans, got i32[3]; compare first, as in x != 0");
  EXPECT_EQ(message_of<DTypeError>([&] { return softmax(integers, 0); }),
            "softmax: takes floats, got i32[3]; cast it to f32 or f64");
  EXPECT_EQ(message_of<DTypeError>([&] { return variance(integers); }),
            "variance: takes floats, got i32[3]; cast it, as in variance(cast(x, f32))");
  EXPECT_EQ(message_of<DTypeError>([&] { return prod(truth); }),
            "prod: takes numbers, got boolean[2]; use all");
  EXPECT_EQ(message_of<DTypeError>([&] { return min(truth); }),
            "min: takes numbers, got boolean[2]; use all");
  EXPECT_EQ(message_of<DTypeError>([&] { return argmin(truth, 0); }),
            "argmin: takes numbers, got boolean[2]; cast it, as in argmin(cast(x, i32), axis)");
}

TEST(ReductionsErrorTest, AxesThatAreNotThere) {
  const Dim batch("batch", 3), other("other", 4);
  EXPECT_EQ(message_of<ShapeError>([&] { return sum(zeros({batch}), other); }),
            "sum: f32[batch=3] has no dim other=4");
  EXPECT_EQ(message_of<IndexError>([&] { return max(zeros({3}), 1); }),
            "max: axis 1 is out of range for f32[3], which has 1 axis");
  EXPECT_EQ(message_of<ArgumentError>([&] {
              return mean(zeros({3, 2}), {0, -2});
            }),
            "mean: axis 0 of f32[3,2] is named twice");
  EXPECT_EQ(message_of<IndexError>([&] { return prod(scalar(1.0), -1); }),
            "prod: axis -1 is out of range for f32[], which has 0 axes");
  EXPECT_EQ(message_of<ArgumentError>([&] { return min(zeros({batch}), batch, Keep::yes); }),
            "min: Keep::yes is for plain dims, got f32[batch=3], whose dims broadcast by name; "
            "leave it out");
}

}  // namespace
}  // namespace reel
