// assert_that: errors for conditions that are false, in every mode.
#include "reel/tests/modes.h"

namespace reel {
namespace {

using AssertThatTest = InEveryMode;
REEL_IN_EVERY_MODE(AssertThatTest);

TEST_P(AssertThatTest, ErrorHasTheTextTheIndexAndTheValues) {
  const auto f = [](const Tensor& x) {
    assert_that(x > 0.0, "x is positive", x, sum(x));
    return sqrt(x);
  };
  expect_values(run(f)(tensor({4., 9.})), {2, 3});
  EXPECT_EQ(message_of<AssertionError>([&] {
              run(f)(tensor({1., -2., -3.}));
            }),
            "assert_that: x is positive\nfalse at [1], the first of 2 elements\n"
            "value 0: f32[3] [ 1. -2. -3.]\nvalue 1: f32[] -4.0");
  EXPECT_EQ(message_of<AssertionError>([&] { run(f)(scalar(-1.0)); }),
            "assert_that: x is positive\nvalue 0: f32[] -1.0\nvalue 1: f32[] -1.0");
}

TEST_P(AssertThatTest, ReturnsTheConditionAndLeavesGradientsAlone) {
  const auto f = [](const Tensor& x) {
    const Tensor is_positive = assert_that(x > 0.0, "x is positive");
    return sum(where(is_positive, square(x), x));
  };
  expect_values(run(grad(f))(tensor({1., 3.})), {2, 6});
}

TEST_P(AssertThatTest, ErrorNamesLoopAndIteration) {
  const auto f = [](const Tensor& n) {
    return while_loop([&](const Tensor& i) { return i < n; },
                      [](const Tensor& i) {
                        assert_that(i < 3, "i is small", i);
                        return i + 1;
                      },
                      scalar(0), {.name = "count"});
  };
  expect_values(run(f)(scalar(3)), {3});
  EXPECT_EQ(message_of<AssertionError>([&] { run(f)(scalar(9)); }),
            "assert_that: i is small\nvalue 0: i32[] 3\nin iteration 3 of while_loop \"count\"");
}

TEST_P(AssertThatTest, AGradientOfALoopChecksEveryIteration) {
  const auto f = [](const Tensor& x) {
    return sum(scan(Scan{.initial = scalar(1.0),
                         .xs = x,
                         .body =
                             [](const Tensor& x, const Tensor& s) {
                               assert_that(s < 10.0, "the state is small", s);
                               return std::pair{None{}, s * x};
                             },
                         .name = "product"})
                   .state);
  };
  expect_values(run(grad(f))(tensor({2., 3., 4.})), {12, 8, 6});
  EXPECT_EQ(message_of<AssertionError>([&] {
              run(grad(f))(tensor({2., 6., 4.}));
            }),
            "assert_that: the state is small\nvalue 0: f32[] 12.0\n"
            "in iteration 2 of scan \"product\"");
}

TEST_P(AssertThatTest, PaddingMayBeFalse) {
  const Dim batch("batch", 2), time("time", tensor({1, 2}, {batch}));
  const auto f = [](const Tensor& x) {
    assert_that(x > 0.0, "x is positive");
    return sum(x);
  };
  expect_values(run(f)(tensor({{1., -1.}, {2., 3.}}, {batch, time})), {6});
  EXPECT_EQ(message_of<AssertionError>([&] {
              run(f)(tensor({{1., -1.}, {2., -3.}}, {batch, time}));
            }),
            "assert_that: x is positive\nfalse at [batch=1, time=1]");
}

/// Finished entries compute on values of a running one, so the assertion names that one.
TEST_P(AssertThatTest, FinishedEntriesNeverFail) {
  const Dim batch("batch", 3), time("time", tensor({1, 3, 2}, {batch}));
  const auto f = [&](const Tensor& x) {
    return scan(Scan{.spatial_dim = x.dim("time"),
                     .initial = zeros({x.dim("batch")}),
                     .xs = x,
                     .body =
                         [](const Tensor& x, const Tensor& s) {
                           assert_that(x > 0.0, "x is positive", x);
                           return std::pair{None{}, s + x};
                         }})
        .state;
  };
  const Tensor good = tensor({{1., -9., -9.}, {1., 2., 3.}, {1., 1., -9.}}, {batch, time});
  expect_values(run(f)(good), {1, 6, 2});
  const Tensor bad = tensor({{1., -9., -9.}, {1., 2., -3.}, {1., 1., -9.}}, {batch, time});
  EXPECT_EQ(message_of<AssertionError>([&] { run(f)(bad); }),
            "assert_that: x is positive\nfalse at [batch=1]\n"
            "value 0: f32[batch=3] [ -  -3.  - ]\nin iteration 2 of scan \"scan\"");
}

TEST(AssertThatErrors, TheConditionMustBeBoolean) {
  EXPECT_EQ(message_of<DTypeError>([] { assert_that(ones({2}), "x"); }),
            "assert_that: the condition must be boolean, got f32[2]; compare it with a number, "
            "e.g. x > 0");
}

}  // namespace
}  // namespace reel
