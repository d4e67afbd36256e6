// Running sums, products and logsumexp: directions, padding, zeros, errors. every_op_test.cpp has
// the requirements on all ops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "reel/tests/modes.h"

namespace reel {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(),
                 kNaN = std::numeric_limits<double>::quiet_NaN();

class CumulativeTest : public InEveryMode {};
REEL_IN_EVERY_MODE(CumulativeTest);

TEST_P(CumulativeTest, SumsInBothDirections) {
  const Tensor x = tensor({{1., 2., 3.}, {4., 5., 6.}});
  const auto of = [&](int axis, Cumulative how) {
    return run([axis, how](Tensor x) { return cumsum(x, axis, how); })(x);
  };
  expect_values(of(1, {}), {1, 3, 6, 4, 9, 15});
  expect_values(of(0, {}), {1, 2, 3, 5, 7, 9});
  expect_values(of(-1, {.exclusive = true}), {0, 1, 3, 0, 4, 9});
  expect_values(of(1, {.reverse = true}), {6, 5, 3, 15, 11, 6});
  expect_values(of(1, {.exclusive = true, .reverse = true}), {5, 3, 0, 11, 6, 0});
}

TEST_P(CumulativeTest, ProductsInBothDirections) {
  const Tensor x = tensor({{1., 2., 3.}, {4., 5., 6.}});
  const auto of = [&](int axis, Cumulative how) {
    return run([axis, how](Tensor x) { return cumprod(x, axis, how); })(x);
  };
  expect_values(of(1, {}), {1, 2, 6, 4, 20, 120});
  expect_values(of(0, {}), {1, 2, 3, 4, 10, 18});
  expect_values(of(1, {.exclusive = true}), {1, 1, 2, 1, 4, 20});
  expect_values(of(1, {.reverse = true}), {6, 6, 3, 120, 30, 6});
  expect_values(of(1, {.exclusive = true, .reverse = true}), {6, 3, 1, 30, 6, 1});
}

/// log Σ exp of a line's elements from begin to end, with the largest one taken out.
double log_sum(const std::vector<double>& x, std::size_t begin, std::size_t end) {
  double largest = -kInf, sum = 0;
  for (std::size_t i = begin; i < end; ++i) largest = std::max(largest, x[i]);
  if (std::isinf(largest)) return largest;
  for (std::size_t i = begin; i < end; ++i) sum += std::exp(x[i] - largest);
  return largest + std::log(sum);
}

TEST_P(CumulativeTest, RunningLogSumExpAgreesWithASumForEachPosition) {
  const std::vector<double> x = {-1, 700, 2, -kInf, 701, -900, 701};
  const std::size_t n = x.size();
  for (const bool exclusive : {false, true})
    for (const bool reverse : {false, true}) {
      std::vector<double> expected;
      for (std::size_t k = 0; k < n; ++k)
        expected.push_back(reverse ? log_sum(x, exclusive ? k + 1 : k, n)
                                   : log_sum(x, 0, exclusive ? k : k + 1));
      const Cumulative how{.exclusive = exclusive, .reverse = reverse};
      for (const DType dtype : {f32, f64})
        expect_values(
            run([how](Tensor x) { return logcumsumexp(x, 0, how); })(tensor(x, {}, dtype)),
            expected, dtype == f32 ? 1e-4 : 1e-12);
    }
}

TEST_P(CumulativeTest, RunningLogSumExpKeepsInfinitiesAndNaN) {
  const auto of = [this](const std::vector<double>& x) {
    return run([](Tensor x) { return logcumsumexp(x, 0); })(tensor(x, {}, f64));
  };
  expect_values(of({-kInf, -kInf, 1}), {-kInf, -kInf, 1});
  expect_values(of({1, kInf, 2, kInf, -kInf}), {1, kInf, kInf, kInf, kInf});
  expect_values(of({1, kNaN, kInf}), {1, kNaN, kNaN});
}

// x̄_i = Σ_k w_k exp(x_i - y_k) over the positions k whose sums have x_i.
TEST_P(CumulativeTest, GradientsOfRunningLogSumExpAreItsSharesOfTheSums) {
  const std::vector<double> x = {0.5, 0.5, -3, 900, -kInf, 899}, w = {1, -2, 3, 0.5, 4, -1};
  for (const bool reverse : {false, true}) {
    std::vector<double> expected(x.size());
    for (std::size_t k = 0; k < x.size(); ++k) {
      const std::size_t begin = reverse ? k : 0, end = reverse ? x.size() : k + 1;
      const double y = log_sum(x, begin, end);
      for (std::size_t i = begin; i < end; ++i) expected[i] += w[k] * std::exp(x[i] - y);
    }
    const auto weighted = [&](Tensor t) {
      return sum(logcumsumexp(t, 0, {.reverse = reverse}) * tensor(w, {}, f64));
    };
    expect_values(run(grad(weighted))(tensor(x, {}, f64)), expected, 1e-12);
  }
}

// Elements that equal the sum before them have the derivatives of all others.
TEST_P(CumulativeTest, SecondDerivativesOfRunningLogSumExpAtEqualElements) {
  const auto last = [](Tensor x) { return slice(logcumsumexp(x, 0), 0, 1, 2); };
  const auto first_share = [&](Tensor x) {
    return sum(slice(grad([&](Tensor x) { return sum(last(x)); })(x), 0, 0, 1));
  };
  // The share p = 1/2 of x_0 has the derivatives p (1 - p) and -p (1 - p).
  expect_values(run(grad(first_share))(tensor({0.5, 0.5}, {}, f64)), {0.25, -0.25}, 1e-12);
}

TEST_P(CumulativeTest, ElementsOfMinusInfinityGetNoGradientFromRunningLogSumExp) {
  const auto f = [](Tensor x) { return sum(logcumsumexp(x, 0) * logcumsumexp(x, 0)); };
  expect_values(run(grad([](Tensor x) { return sum(slice(logcumsumexp(x, 0), 0, 2, 3)); }))(
                    tensor({-kInf, -kInf, 1.}, {}, f64)),
                {0, 0, 1});
  expect_values(run(grad(f))(tensor({1., -kInf}, {}, f64)), {4, 0});
}

TEST(CumulativeKernelTest, AnyNumberOfLinesIsAddedLineByLine) {
  for (std::int64_t lines = 1; lines <= 17; ++lines) {
    const Tensor x = random_normal({lines, 5}, f64);
    for (const Cumulative how : {Cumulative{}, {.exclusive = true}, {.reverse = true}}) {
      const Tensor sums = cumsum(x, 1, how), products = cumprod(x, 1, how);
      for (std::int64_t line = 0; line < lines; ++line) {
        const Tensor of = slice(x, 0, line, line + 1);
        expect_same_bits(slice(sums, 0, line, line + 1), cumsum(of, 1, how));
        expect_same_bits(slice(products, 0, line, line + 1), cumprod(of, 1, how));
      }
      // Sums and products along the first axis have the same bits.
      expect_same_bits(cumsum(transpose(x, {1, 0}), 0, how), transpose(sums, {1, 0}));
      expect_same_bits(cumprod(transpose(x, {1, 0}), 0, how), transpose(products, {1, 0}));
    }
  }
}

// Lines that are a multiple of 4 KiB apart are walked four at a time, others eight.
TEST(CumulativeKernelTest, LinesHaveTheBitsOfOneLine) {
  manual_seed(3);
  for (const DType dtype : {f32, f64})
    for (const std::int64_t size : {511, 512, 1023, 1024, 2048})
      for (const std::int64_t lines : {1, 3, 4, 5, 8, 9}) {
        SCOPED_TRACE(::testing::Message() << lines << " lines of " << size);
        const Tensor x = random_normal({lines, size}, dtype);
        const Tensor sums = cumsum(x, 1);
        for (std::int64_t line = 0; line < lines; ++line)
          expect_same_bits(slice(sums, 0, line, line + 1), cumsum(slice(x, 0, line, line + 1), 1));
      }
}

TEST_P(CumulativeTest, AlongARaggedDimEachEntryIsWithinItsLength) {
  const Dim batch("batch", 3), time("time", tensor({3, 2, 0}, {batch}));
  const Tensor x = tensor({1., 2., 3., 4., 5., kNaN, kNaN, kNaN, kNaN}, {batch, time});
  const auto of = [&](auto f) { return run([f](Tensor x) { return f(x); })(x); };
  expect_values(of([](Tensor x) { return cumsum(x, x.dim("time")); }), {1, 3, 6, 4, 9, 0, 0, 0, 0});
  expect_values(of([](Tensor x) { return cumsum(x, x.dim("time"), {.reverse = true}); }),
                {6, 5, 3, 9, 5, 0, 0, 0, 0});
  expect_values(of([](Tensor x) { return cumprod(x, x.dim("time"), {.reverse = true}); }),
                {6, 6, 3, 20, 5, 0, 0, 0, 0});
  expect_values(of([](Tensor x) { return cumprod(x, x.dim("time"), {.exclusive = true}); }),
                {1, 1, 2, 1, 4, 0, 0, 0, 0});
  // Along batch, time's lengths tell which entries exist.
  expect_values(of([](Tensor x) { return cumsum(x, x.dim("batch")); }),
                {1, 2, 3, 5, 7, 0, 0, 0, 0});
  // Equal elements: the sum of n of them is their number plus log n.
  const Tensor equal = where(x > 0, 1., x);
  for (const bool reverse : {false, true}) {
    const auto sums = [reverse](Tensor x) {
      return exp(logcumsumexp(x, x.dim("time"), {.reverse = reverse}) - 1);
    };
    const double e = std::exp(-1.);  // of padding, 0
    if (reverse)
      expect_values(run(sums)(equal), {3, 2, 1, 2, 1, e, e, e, e}, 1e-5);
    else
      expect_values(run(sums)(equal), {1, 2, 3, 1, 2, e, e, e, e}, 1e-5);
  }
  expect_values(run(grad([](Tensor x) { return sum(logcumsumexp(x, x.dim("time"))); }))(equal),
                {1 + 1. / 2 + 1. / 3, 1. / 2 + 1. / 3, 1. / 3, 1 + 1. / 2, 1. / 2, 0, 0, 0, 0},
                1e-5);
  expect_values(run(grad([](Tensor x) { return sum(cumsum(x, x.dim("time"))); }))(x),
                {3, 2, 1, 2, 1, 0, 0, 0, 0});
  expect_values(run(grad([](Tensor x) { return sum(cumprod(x, x.dim("time"))); }))(x),
                {9, 4, 2, 6, 4, 0, 0, 0, 0});
}

TEST_P(CumulativeTest, TheGradientOfAProductIsRightWithZeros) {
  const Tensor x = tensor({2., 0., 3., 0., 5.}, {}, f64);
  const auto weighted = [](Tensor x) {
    return sum(cumprod(x, 0) * tensor({1., 10., 100., 1000., 10000.}, {}, f64));
  };
  // Σ_k w_k Π_{j<=k, j!=i} x_j
  expect_values(run(grad(weighted))(x), {1, 20 + 600, 0, 0, 0}, 1e-12);
  const auto second = grad([weighted](Tensor x) { return sum(grad(weighted)(x)); });
  // By hand: the derivative by x_1 and x_3 is 1000·2·3 + 10000·2·3·5, by x_0 and x_1 10 + 100·3.
  expect_values(run(second)(x), {310, 310 + 200 + 306000, 200, 306000, 0}, 1e-9);
}

TEST_P(CumulativeTest, IntegersWrapAroundAndAxesMayBeEmpty) {
  expect_values(run([](Tensor x) { return cumsum(x, 0); })(tensor({2147483647, 1, 1})),
                {2147483647., -2147483648., -2147483647.}, 0);
  expect_values(run([](Tensor x) { return cumprod(x, 0); })(tensor({65536, 65536, 7})),
                {65536, 0, 0}, 0);
  expect_values(run([](Tensor x) { return cumsum(x, 1); })(zeros({2, 0})), {});
}

TEST(CumulativeAccuracyTest, ALongSumOfFloatsKeepsItsDigits) {
  const std::int64_t count = 1'000'000;
  const Tensor sums = cumsum(full({count}, 0.1), 0);
  const double last = sums.to_vector<float>()[count - 1];
  EXPECT_NEAR(last / (0.1f * static_cast<double>(count)), 1, 1e-7);
}

TEST(CumulativeErrorTest, RefusesBooleansAndAxesOutOfRange) {
  EXPECT_EQ(message_of<DTypeError>([] { return cumsum(tensor({true}), 0); }),
            "cumsum: takes numbers, got boolean[1]; cast it to i32");
  EXPECT_EQ(message_of<DTypeError>([] { return cumprod(tensor({true}), 0); }),
            "cumprod: takes numbers, got boolean[1]; cast it to i32");
  EXPECT_EQ(message_of<DTypeError>([] {
              return logcumsumexp(tensor({1, 2}), 0);
            }),
            "logcumsumexp: takes floats, got i32[2]; cast it to f32 or f64");
  EXPECT_EQ(message_of<IndexError>([] {
              return cumprod(zeros({2, 3}), 2);
            }),
            "cumprod: axis 2 is out of range for f32[2,3], which has 2 axes");
  EXPECT_EQ(message_of<IndexError>([] { return cumsum(scalar(1.), 0); }),
            "cumsum: axis 0 is out of range for f32[], which has 0 axes");
}

}  // namespace
}  // namespace reel
