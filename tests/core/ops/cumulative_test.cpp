// Running sums and products: directions, padding, zeros, errors. every_op_test.cpp has the
// requirements on all ops.
#include <gtest/gtest.h>

#include <limits>

#include "reel/tests/modes.h"

namespace reel {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

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
  EXPECT_EQ(message_of<IndexError>([] {
              return cumprod(zeros({2, 3}), 2);
            }),
            "cumprod: axis 2 is out of range for f32[2,3], which has 2 axes");
  EXPECT_EQ(message_of<IndexError>([] { return cumsum(scalar(1.), 0); }),
            "cumsum: axis 0 is out of range for f32[], which has 0 axes");
}

}  // namespace
}  // namespace reel
