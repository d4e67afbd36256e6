// TensorArray in every mode, and its errors.
#include "reel/tests/modes.h"

namespace reel {
namespace {

using TensorArrayTest = InEveryMode;
REEL_IN_EVERY_MODE(TensorArrayTest);

struct Fibonacci {
  Tensor i;
  TensorArray list;
};

TEST_P(TensorArrayTest, IsStateOfALoopAndAValue) {  // 75, 78
  const auto fibonacci = run([](Tensor n) {
    const TensorArray start = TensorArray({f32, {}}).push_back(scalar(1.0)).push_back(scalar(1.0));
    const TensorArray all =
        while_loop([&](const Fibonacci& s) { return s.i < n; },
                   [](const Fibonacci& s) {
                     return Fibonacci{s.i + 1, s.list.push_back(s.list[s.i - 1] + s.list[s.i - 2])};
                   },
                   Fibonacci{scalar(2), start})
            .list;
    return std::tuple{all.stack(), all.size(), start.size()};
  });
  const auto [values, size, start_size] = fibonacci(scalar(6));
  expect_values(values, {1, 1, 2, 3, 5, 8});
  expect_values(size, {6});
  expect_values(start_size, {2});
}

TEST_P(TensorArrayTest, OldHandlesNeverChange) {  // 74
  const auto f = run([](Tensor a, Tensor b) {
    const TensorArray empty({f32, {}});
    const TensorArray one = empty.push_back(a), other = empty.push_back(b);
    return std::tuple{empty.size(), one[0], other[0], one.write(0, b)[0], one[0]};
  });
  const auto [size, a, b, written, still] = f(scalar(1.0), scalar(2.0));
  expect_values(size, {0});
  expect_values(a, {1});
  expect_values(b, {2});
  expect_values(written, {2});
  expect_values(still, {1});
}

TEST_P(TensorArrayTest, UnstackAndStackShareOrder) {  // 76
  const Dim batch("batch", 3), time("time", 3);
  const auto f = run([&](Tensor x) { return TensorArray::unstack(x, time).stack(time); });
  const Tensor x = tensor({1., 2., 3., 4., 5., 6., 7., 8., 9.}, {batch, time});
  expect_values(transpose(f(x), {batch, time}), {1, 2, 3, 4, 5, 6, 7, 8, 9});
}

TEST_P(TensorArrayTest, UnwrittenElementsAreZeros) {  // T06
  const Dim batch("batch", 2), slot("slot", 3);
  const auto f = run([&](Tensor x) {
    return TensorArray({f32, {batch}}, {.size = 3}).write(1, x).write(0, x * 2.0).stack(slot);
  });
  expect_values(f(tensor({1., 2.}, {batch})), {2, 4, 1, 2, 0, 0});
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
  // Reads x forwards and pushes squares; the sum of products with their index.
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

TEST_P(TensorArrayTest, SecondDerivativeThroughAWrite) {  // S08
  const auto f = [](Tensor x) {
    return square(TensorArray({f32, {}}, {.size = 1}).write(0, x)[0]);
  };
  expect_values(run(grad(grad(f)))(scalar(4.0)), {2});
}

TEST_P(TensorArrayTest, PermutedDimsAreBroughtInOrder) {  // 80
  const Dim batch("batch", 2), feature("feature", 3);
  const auto f = run([&](Tensor a, Tensor b) {
    return TensorArray({f32, {feature, batch}}).push_back(a).push_back(b).stack(Dim("n", 2));
  });
  const Tensor a = random_normal({feature, batch});
  const Tensors both = unstack(f(a, transpose(a, {batch, feature})), 0);
  expect_same_bits(both[0], a);
  expect_same_bits(both[1], a);
}

TEST_P(TensorArrayTest, GrowsWhereItMay) {
  const auto f = run([](Tensor x) {
    return TensorArray({f32, {}}, {.dynamic_size = true}).write(2, x).stack();
  });
  expect_values(f(scalar(5.0)), {0, 0, 5});
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

TEST(TensorArrayErrorTest, NameTheArrayTheElementAndTheRule) {
  const Dim batch("batch", 2);
  EXPECT_EQ(message_of<IndexError>([] { TensorArray::unstack(ones({3}), 0)[3]; }),
            "TensorArray read: index 3 is out of range for 3 elements");
  EXPECT_EQ(message_of<IndexError>([] { TensorArray::unstack(ones({3}), 0)[-4]; }),
            "TensorArray read: index -4 is out of range for 3 elements");
  EXPECT_EQ(message_of<IndexError>([] {
              TensorArray({f32, {}}, {.size = 2}).write(2, scalar(1.0));
            }),
            "TensorArray write: index 2 is out of range for 2 elements; an array made with "
            ".dynamic_size = true grows");
  EXPECT_EQ(message_of<ShapeError>([&] {
              TensorArray({f32, {batch}}).push_back(ones({3}));
            }),
            "TensorArray push_back: an element of type f32[3] does not fit an array of "
            "f32[batch=2]: dims differ");
  EXPECT_EQ(message_of<DTypeError>([&] {
              TensorArray({f32, {batch}}).push_back(ones({batch}, i32));
            }),
            "TensorArray push_back: an element of type i32[batch=2] does not fit an array of "
            "f32[batch=2]: dtypes differ; "
            "cast it to f32");
  EXPECT_EQ(message_of<ShapeError>([&] { TensorArray::unstack(ones({3}), 0).stack(Dim("n", 2)); }),
            "TensorArray stack: dim n=2 has size 2, but the array has 3 elements");
  EXPECT_EQ(message_of<DTypeError>([&] { TensorArray::unstack(ones({3}), 0)[scalar(1.0)]; }),
            "TensorArray read: a TensorArray index must be an integer, got f32[]");
}

}  // namespace
}  // namespace reel
