// TensorArray in every mode, beyond the tables in tests/cases.
#include "reel/tests/modes.h"

namespace reel {
namespace {

using TensorArrayTest = InEveryMode;
REEL_IN_EVERY_MODE(TensorArrayTest);

struct Fibonacci {
  Tensor i;
  TensorArray list;
};

TEST(TensorArrayErrorsTest, AnEmptyElementIsRefusedByName) {
  const TensorArray array(TensorType(f32, {2}));
  EXPECT_EQ(message_of<ArgumentError>([&] { array.push_back(Tensor()); }),
            "TensorArray push_back: was given an empty Tensor; assign a tensor to it first, and do "
            "not use one that was moved");
  EXPECT_EQ(message_of<ArgumentError>([&] { array.write(0, Tensor()); }),
            "TensorArray write: was given an empty Tensor; assign a tensor to it first, and do not "
            "use one that was moved");
}

TEST_P(TensorArrayTest, GradientsOfReadsAddUp) {
  const auto f = [](Tensor x) {
    const TensorArray array = TensorArray::unstack(x, 0);
    Tensor total = scalar(0.0);
    for (int i = 0; i < 5; ++i) total = total + array[i % 2] * float(i + 1);
    return total;
  };
  expect_values(run(grad(f))(tensor({1., 2., 3.})), {9, 6, 0});
}

TEST_P(TensorArrayTest, GradientOfAnArrayHasAsManyElements) {
  const auto array = TensorArray({f32, {}}).push_back(scalar(3.0)).push_back(scalar(4.0));
  const auto f = [](const TensorArray& a) { return square(a[0]); };
  expect_values(run(grad(f))(array).stack(), {6, 0});
  const auto nothing = [](const TensorArray&) { return scalar(1.0); };
  expect_values(run(grad(nothing))(array).stack(), {0, 0});
  const auto uneven = TensorArray({f32, {unknown}}).push_back(ones({1})).push_back(ones({2}));
  const auto first = [](const TensorArray& a) { return sum(square(a[0])); };
  const TensorArray gradient = run(grad(first))(uneven);
  expect_values(gradient[0], {2});
  expect_values(gradient[1], {0, 0});
}

TEST_P(TensorArrayTest, GradientThroughReadsAndPushesInALoop) {
  // Reads x in order and pushes squares; the loss sums the squares, weighted by index.
  const auto f = [](Tensor x) {
    const TensorArray xs = TensorArray::unstack(x, 0);
    const TensorArray squares =
        while_loop([](const Fibonacci& s) { return s.i < 4; },
                   [&](const Fibonacci& s) {
                     return Fibonacci{s.i + 1, s.list.push_back(square(xs[s.i]))};
                   },
                   Fibonacci{scalar(0), TensorArray({f32, {}})})
            .list;
    return sum(squares.stack() * cast(range(4), f32), {0});
  };
  const Tensor x = tensor({1., 2., 3., 4.});
  expect_values(run(f)(x), {4 + 2 * 9 + 3 * 16});
  expect_values(run(grad(f))(x), {0, 4, 12, 24});
  expect_values(run(grad([&](Tensor x) { return sum(grad(f)(x)); }))(x), {0, 2, 4, 6});
}

TEST_P(TensorArrayTest, ElementsThatDifferInSizeHaveGradients) {
  const auto f = [](Tensor x) {
    const TensorArray list =
        TensorArray({f32, {unknown, 2}}).push_back(x).push_back(concat({x, x}, 0)).push_back(x);
    return sum(square(list[1])) + sum(list[0] * list[0] * list[0]);
  };
  const Tensor x = tensor({{1., 2.}});
  expect_values(run(grad(f))(x), {4 + 3, 8 + 12});
  expect_values(run(grad([&](Tensor x) { return sum(grad(f)(x)); }))(x), {4 + 6, 4 + 12});
  const auto first_only = [](Tensor x) {
    const TensorArray list = TensorArray({f32, {unknown, 2}}).push_back(x).push_back(x * 2.0);
    return sum(square(list[0]));
  };
  expect_values(run(grad(first_only))(x), {2, 4});
  expect_values(run(grad([&](Tensor x) { return sum(grad(first_only)(x)); }))(x), {2, 2});
}

TEST_P(TensorArrayTest, ElementsThatDifferInSizeHaveGradientsThroughALoop) {
  const auto f = [](Tensor x) {
    const auto list =
        while_loop([](const Fibonacci& s) { return s.i < 3; },
                   [&](const Fibonacci& s) {
                     return Fibonacci{s.i + 1, s.list.push_back(x * cast(s.i, f32))};
                   },
                   Fibonacci{scalar(0), TensorArray({f32, {unknown}}).push_back(concat({x, x}, 0))})
            .list;
    return sum(square(list[0])) + sum(square(list[3]));
  };
  expect_values(run(grad(f))(tensor({1., 2.})), {12, 24});  // 2 · 2x + 2 · 4x
}

}  // namespace
}  // namespace reel
