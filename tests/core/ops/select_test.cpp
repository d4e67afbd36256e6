#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "reel/autodiff/tape.h"
#include "reel/core/base/errors.h"
#include "reel/core/ops.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(WhereTest, TakesElementsFromEither) {
  const Tensor condition = tensor({true, false, true});
  for (const DType dtype : {f32, f64, i32, i64})
    expect_values(where(condition, tensor({1, 2, 3}, {}, dtype), tensor({4, 5, 6}, {}, dtype)),
                  {1, 5, 3});
  expect_values(where(condition, tensor({true, true, false}), tensor({false, false, true})),
                {1, 0, 0});
}

TEST(WhereTest, UntakenElementsMayBeInfinite) {
  const Tensor x = tensor({0., 2.});
  expect_values(where(x > 0, 1.0 / x, 0), {0, 0.5});
}

TEST(WhereTest, AllThreeBroadcast) {
  const Tensor condition = tensor({true, false}, {2, 1});
  expect_values(where(condition, tensor({1., 2., 3.}), scalar(-1.0)), {1, 2, 3, -1, -1, -1});
  expect_values(where(scalar(true), tensor({1., 2.}), tensor({3.})), {1, 2});
  const Dim batch("batch", 2), feature("feature", 3);
  const Tensor x = tensor({1., 2., 3., 4., 5., 6.}, {batch, feature});
  const Tensor named = where(tensor({false, true}, {batch}), x, tensor({7., 8., 9.}, {feature}));
  EXPECT_EQ(named.type(), x.type());
  expect_values(named, {7, 8, 9, 4, 5, 6});
}

TEST(WhereTest, LongRowsOfEveryForm) {
  const std::int64_t size = 67;
  const Tensor condition = range(size) % 3 == 0, a = range(size, f64), b = neg(a);
  for (const bool repeat_c : {false, true})
    for (const bool repeat_a : {false, true})
      for (const bool repeat_b : {false, true}) {
        const Tensor result =
            where(repeat_c ? scalar(true) : condition, repeat_a ? scalar(0.5, f64) : a,
                  repeat_b ? scalar(-0.5, f64) : b);
        std::vector<double> expected;
        for (std::int64_t i = 0; i < result.numel(); ++i)
          expected.push_back(repeat_c || i % 3 == 0 ? (repeat_a ? 0.5 : i)
                                                    : (repeat_b ? -0.5 : -i));
        expect_values(result, expected, 0);
      }
}

TEST(WhereTest, LiteralsTakeTheDtypeOfTheOtherBranch) {
  const Tensor condition = tensor({true, false});
  EXPECT_EQ(where(condition, 1, 0).dtype(), i32);
  EXPECT_EQ(where(condition, 1, 0.5).dtype(), f32);
  EXPECT_EQ(where(condition, ones({2}, f64), 0).dtype(), f64);
  expect_values(where(condition, 0.5, ones({2})), {0.5, 1});
}

TEST(WhereTest, GradientsGoWhereValuesCameFrom) {
  const Tensor condition = tensor({true, false, true}), a = tensor({1., 2., 3.}), b = scalar(0.0);
  RecordingTape tape;
  tape.watch(a);
  tape.watch(b);
  const Tensors g = tape.gradient({where(condition, a, b)}, {tensor({1., kNaN, 3.})}, {a, b});
  expect_values(g[0], {1, 0, 3});
  expect_values(g[1], {kNaN});
}

TEST(WhereTest, RefusesOtherConditionsDtypesAndDims) {
  EXPECT_EQ(message_of<DTypeError>([] { return where(ones({3}), 1, 0); }),
            "where: the condition must be boolean, but is f32[3]; compare it, e.g. condition != 0");
  EXPECT_EQ(message_of<DTypeError>([] { return where(scalar(true), ones({3}), range(3)); }),
            "where: dtypes differ: a f32[3], b i32[3]; cast one of them, e.g. cast(b, f32)");
  EXPECT_EQ(
      message_of<DTypeError>([] { return where(scalar(true), range(3), 0.5); }),
      "where: the literal 0.5 is floating, but a is i32[3]; cast the tensor, e.g. cast(a, f32)");
  EXPECT_EQ(message_of<ArgumentError>([] { return where(true, ones({3}), 0); }),
            "where: the condition is a number; it must be a boolean tensor, or C++ chooses: "
            "condition ? a : b");
  const Dim batch("batch", 2), feature("feature", 3);
  EXPECT_EQ(message_of<ShapeError>([&] { return where(ones({batch}) > 0, ones({feature}), 0); }),
            "where: dims differ: condition boolean[batch=2] lacks feature=3, a f32[feature=3] "
            "lacks batch=2; one operand must "
            "have all dims of the result: give it the missing ones with expand");
}

TEST(CastTest, FloatsBecomeIntegersTowardsZeroAndStayInRange) {
  const Tensor x = tensor({1.9, -1.9, 3e9, -3e9, kInf, -kInf, kNaN, 1e300}, {}, f64);
  constexpr double kMaxI32 = 2147483647, kLeast = -2147483648.;
  expect_values(cast(x, i32), {1, -1, kMaxI32, kLeast, kMaxI32, kLeast, 0, kMaxI32}, 0);
  const std::vector<std::int64_t> wide = cast(x, i64).to_vector<std::int64_t>();
  EXPECT_EQ(wide[2], 3000000000);
  EXPECT_EQ(wide[4], std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(wide[5], std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(wide[6], 0);
  expect_values(cast(tensor({2147483648., -2147483648.}, {}, f32), i32), {kMaxI32, kLeast}, 0);
}

/// Blocks of elements are converted at once if all of them are in range.
TEST(CastTest, OneFloatOutOfRangeChangesNoOther) {
  constexpr int kCount = 400;
  for (const int at : {0, 127, 128, 255, 256, 383, 384, kCount - 1})
    for (const double beyond : {3e9, -3e9, kNaN}) {
      std::vector<double> numbers(kCount), expected(kCount);
      for (int i = 0; i < kCount; ++i) numbers[i] = expected[i] = 1000 * (i - 200);
      numbers[at] = beyond;
      expected[at] = std::isnan(beyond) ? 0 : std::clamp(beyond, -2147483648., 2147483647.);
      SCOPED_TRACE(str(beyond, " at ", at));
      expect_values(cast(tensor(numbers, {}, f32), i32), expected, 0);
      expect_values(cast(tensor(numbers, {}, f64), i32), expected, 0);
    }
}

TEST(CastTest, NonzeroNumbersBecomeTrue) {
  expect_values(cast(tensor({0., -0., 0.5, kNaN}), boolean), {0, 0, 1, 1});
  expect_values(cast(tensor({0, 2, -1}), boolean), {0, 1, 1});
  expect_values(cast(tensor({true, false}), f32), {1, 0});
  expect_values(cast(tensor({true, false}), i64), {1, 0});
}

TEST(CastTest, EveryPairOfDTypes) {
  for (const DType from : {f32, f64, i32, i64, boolean})
    for (const DType to : {f32, f64, i32, i64, boolean}) {
      const Tensor y = cast(cast(range(37) % 2, from), to);
      EXPECT_EQ(y.type(), TensorType(to, {37}));
      expect_values(y, cast(range(37) % 2, f64).to_vector<double>(), 0);
    }
}

TEST(CastTest, TheSameDTypeIsTheSameTensor) {
  const Tensor x = ones({3});
  EXPECT_EQ(cast(x, f32).block(), x.block());
}

TEST(CastTest, GradientsAreCastBack) {
  const Tensor x = tensor({1., 2.});
  RecordingTape tape;
  tape.watch(x);
  const Tensor g = tape.gradient({cast(x, f64) * 3.0}, {Tensor()}, {x})[0];
  EXPECT_EQ(g.type(), x.type());
  expect_values(g, {3, 3});
}

TEST(CastTest, IntegersPassNoGradient) {
  const Tensor x = tensor({1., 2.});
  RecordingTape tape;
  tape.watch(x);
  const Tensor y = cast(cast(x, i32), f32);
  EXPECT_FALSE(tape.gradient({y}, {Tensor()}, {x})[0].is_defined());
}

}  // namespace
}  // namespace reel
