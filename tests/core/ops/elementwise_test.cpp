#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "reel/autodiff/tape.h"
#include "reel/core/base/errors.h"
#include "reel/core/graph/graph_builder.h"
#include "reel/core/ops.h"
#include "reel/core/ops/control/replay.h"
#include "reel/frontend/jit.h"
#include "reel/frontend/transforms/grad.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Tensor f64s(const std::vector<double>& values) { return tensor(values); }
Tensor f32s(const std::vector<double>& values) { return tensor(values, {}, f32); }
Tensor i32s(const std::vector<std::int32_t>& values) { return tensor(values); }
Tensor i64s(const std::vector<std::int64_t>& values) { return tensor(values); }

/// Returns the gradients of the sum of f's elements.
Tensors gradients(const std::function<Tensor(const Tensors&)>& f, const Tensors& x) {
  RecordingTape tape;
  for (const Tensor& input : x) tape.watch(input);
  return tape.gradient({f(x)}, {Tensor()}, x);
}

// ---- Values -------------------------------------------------------------------------------------

TEST(ElementwiseTest, FunctionsSaturateAndKeepNaN) {
  for (const DType dtype : {f32, f64}) {
    const Tensor x = tensor({-kInf, -1000., -0., 0., 1000., kInf, kNaN}, {}, dtype);
    expect_values(exp(x), {0, 0, 1, 1, kInf, kInf, kNaN});
    expect_values(log(x), {kNaN, kNaN, -kInf, -kInf, std::log(1000.), kInf, kNaN});
    expect_values(sqrt(x), {kNaN, kNaN, 0, 0, std::sqrt(1000.), kInf, kNaN});
    expect_values(tanh(x), {-1, -1, 0, 0, 1, 1, kNaN});
    expect_values(sigmoid(x), {0, 0, 0.5, 0.5, 1, 1, kNaN});
    const double right = std::acos(0.), far = std::atan(1000.);
    expect_values(arctan(x), {-right, -far, 0, 0, far, right, kNaN}, 1e-6);
    expect_values(relu(x), {0, 0, 0, 0, 1000, kInf, kNaN});
    expect_values(abs(x), {kInf, 1000, 0, 0, 1000, kInf, kNaN});
    expect_values(square(x), {kInf, 1e6, 0, 0, 1e6, kInf, kNaN});
  }
}

TEST(ElementwiseTest, SigmoidOfLargeNegativesIsTinyNotNaN) {
  expect_values(sigmoid(f32s({-100, -90, -80})), {0, 0, std::exp(-80.)}, 1e-40);
}

TEST(ElementwiseTest, FunctionsOfSubnormals) {
  const double tiny = 1e-40, tiny64 = 1e-310;
  expect_values(log(f32s({tiny})), {std::log(static_cast<double>(static_cast<float>(tiny)))}, 1e-6);
  expect_values(log(f64s({tiny64})), {std::log(tiny64)}, 1e-14);
  expect_values(pow(f64s({tiny64}), 0.3), {std::pow(tiny64, 0.3)}, 1e-106);
  expect_values(tanh(f64s({tiny64})), {tiny64}, 0);
}

TEST(ElementwiseTest, ZerosKeepTheirSign) {
  const auto signs = [](const Tensor& x) {
    std::vector<bool> result;
    for (const double value : x.to_vector<double>()) result.push_back(std::signbit(value));
    return result;
  };
  const Tensor x = f64s({0., -0.});
  EXPECT_EQ(signs(neg(x)), (std::vector<bool>{true, false}));
  EXPECT_EQ(signs(tanh(x)), (std::vector<bool>{false, true}));
  EXPECT_EQ(signs(arctan(x)), (std::vector<bool>{false, true}));
  EXPECT_EQ(signs(abs(x)), (std::vector<bool>{false, false}));
}

TEST(ElementwiseTest, MaximumAndMinimumPassNaNOn) {
  for (const DType dtype : {f32, f64}) {
    const Tensor a = tensor({kNaN, 1., kNaN, -kInf, 2.}, {}, dtype),
                 b = tensor({1., kNaN, kNaN, 0., 3.}, {}, dtype);
    expect_values(maximum(a, b), {kNaN, kNaN, kNaN, 0, 3});
    expect_values(minimum(a, b), {kNaN, kNaN, kNaN, -kInf, 2});
  }
}

TEST(ElementwiseTest, ComparisonsWithNaNAreFalseSaveNotEqual) {
  const Tensor a = f32s({kNaN, 1, 1, 2}), b = f32s({kNaN, kNaN, 1, 1});
  expect_values(a == b, {0, 0, 1, 0});
  expect_values(a != b, {1, 1, 0, 1});
  expect_values(a < b, {0, 0, 0, 0});
  expect_values(a <= b, {0, 0, 1, 0});
  expect_values(a > b, {0, 0, 0, 1});
  expect_values(a >= b, {0, 0, 1, 1});
  EXPECT_EQ((a < b).dtype(), boolean);
}

TEST(ElementwiseTest, PowerOfWholeExponentsIsExact) {
  expect_values(pow(f32s({3, -2, 10, 2, 7, -1}), f32s({2, 3, 5, -3, 0, 63})),
                {9, -8, 100000, 0.125, 1, -1}, 0);
  expect_values(pow(f64s({1.5, 3}), 2.0), {2.25, 9}, 0);
}

TEST(ElementwiseTest, PowerOfATemporaryReadsItBeforeItIsReused) {
  const Tensor x = tensor({1., -2., 3.});
  expect_values(pow(x + 1, 3), {8, -1, 64});
  expect_values(pow(x + 1, 2), {4, 1, 16});
  expect_values(pow(abs(x), 0.5), {1, std::sqrt(2.), std::sqrt(3.)});
}

TEST(ElementwiseTest, PowerAgreesWithTheStandardLibraryInSpecialCases) {
  const double values[] = {-kInf, -2.5, -2, -1, -0.5, 0, 0.5, 1, 2.5, 40, 81, kInf, kNaN};
  std::vector<double> a, b, expected;
  for (const double x : values)
    for (const double y : values) {
      a.push_back(x);
      b.push_back(y);
      expected.push_back(std::pow(x, y));
    }
  expect_values(pow(f64s(a), f64s(b)), expected, 1e-13);
}

TEST(ElementwiseTest, IntegersDivideAsInCppAndNeverTrap) {
  constexpr std::int32_t kLeast = std::numeric_limits<std::int32_t>::min();
  const Tensor a = i32s({7, -7, 7, -7, 5, 0, kLeast, kLeast}),
               b = i32s({2, 2, -2, -2, 0, 0, -1, 0});
  expect_values(a / b, {3, -3, -3, 3, 0, 0, kLeast, 0}, 0);
  expect_values(a % b, {1, -1, 1, -1, 0, 0, 0, 0}, 0);
  constexpr std::int64_t kLeast64 = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ((i64s({kLeast64, 5}) / i64s({-1, 0})).to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{kLeast64, 0}));
}

TEST(ElementwiseTest, FloorDivideAndModAsInNumPy) {
  const Tensor a = i32s({7, -7, 7, -7, 6, -6, 5}), b = i32s({2, 2, -2, -2, -3, 3, 0});
  expect_values(floor_divide(a, b), {3, -4, -4, 3, -2, -2, 0}, 0);
  expect_values(mod(a, b), {1, 1, -1, -1, 0, 0, 0}, 0);
}

TEST(ElementwiseTest, FloorDivideAndModOfFloatsAsInNumPy) {
  for (const DType dtype : {f32, f64}) {
    const Tensor a = tensor({7., -7., 7., -7., 6., -6., 5.5, -5.5, -1., 1.}, {}, dtype),
                 b = tensor({2., 2., -2., -2., -3., 3., 2., 2., kInf, -kInf}, {}, dtype);
    expect_values(floor_divide(a, b), {3, -4, -4, 3, -2, -2, 2, -3, -1, -1}, 0);
    expect_values(mod(a, b), {1, 1, -1, -1, 0, 0, 1.5, 0.5, kInf, -kInf}, 0);
    const Tensor c = tensor({1., -1., 0., kInf, kNaN, 1.}, {}, dtype),
                 d = tensor({0., 0., 0., 2., 2., kNaN}, {}, dtype);
    expect_values(floor_divide(c, d), {kInf, -kInf, kNaN, kNaN, kNaN, kNaN}, 0);
    expect_values(mod(c, d), {kNaN, kNaN, kNaN, kNaN, kNaN, kNaN}, 0);
  }
  // 1 / 0.1 rounds to 10, but 0.1 is a little more than a tenth.
  expect_values(floor_divide(f64s({1, 1e18}), f64s({0.1, 3})), {9, 333333333333333333.}, 0);
  expect_values(mod(f64s({1, 1e18}), f64s({0.1, 3})), {std::fmod(1, 0.1), 1}, 0);
}

TEST(ElementwiseTest, ARemainderOfZeroHasTheSignOfTheDivisor) {
  const auto rest = mod(f64s({6, -6, 6, -6}), f64s({3, 3, -3, -3})).to_vector<double>();
  EXPECT_FALSE(std::signbit(rest[0]) || std::signbit(rest[1]));
  EXPECT_TRUE(std::signbit(rest[2]) && std::signbit(rest[3]));
}

TEST(ElementwiseTest, SignAndRounding) {
  for (const DType dtype : {f32, f64}) {
    const Tensor x = tensor({-kInf, -2.5, -1.5, -0.5, 0., 0.5, 1.5, 2.5, kInf, kNaN}, {}, dtype);
    expect_values(sign(x), {-1, -1, -1, -1, 0, 1, 1, 1, 1, kNaN}, 0);
    expect_values(floor(x), {-kInf, -3, -2, -1, 0, 0, 1, 2, kInf, kNaN}, 0);
    expect_values(ceil(x), {-kInf, -2, -1, 0, 0, 1, 2, 3, kInf, kNaN}, 0);
    expect_values(round(x), {-kInf, -2, -2, 0, 0, 0, 2, 2, kInf, kNaN}, 0);
  }
  const Tensor x = i32s({-3, 0, 7});
  expect_values(sign(x), {-1, 0, 1}, 0);
  expect_values(round(x), {-3, 0, 7}, 0);
  EXPECT_EQ(floor(x).dtype(), i32);
}

TEST(ElementwiseTest, SmallAndLargeArguments) {
  for (const DType dtype : {f32, f64}) {
    const Tensor x = tensor({-kInf, -1000., -1e-7, 0., 1e-7, 1000., kInf, kNaN}, {}, dtype);
    expect_values(expm1(x), {-1, -1, -1e-7, 0, 1e-7, kInf, kInf, kNaN}, 1e-13);
    expect_values(softplus(x), {0, 0, std::log(2.), std::log(2.), std::log(2.), 1000, kInf, kNaN},
                  1e-7);
    expect_values(gelu(x), {0, 0, -5e-8, 0, 5e-8, 1000, kInf, kNaN}, 1e-13);
    expect_values(erf(x), {-1, -1, -1.128379167e-7, 0, 1.128379167e-7, 1, 1, kNaN}, 1e-13);
    expect_values(log1p(tensor({-2., -1., -1e-7, 1e-7, kInf, kNaN}, {}, dtype)),
                  {kNaN, -kInf, -1e-7, 1e-7, kInf, kNaN}, 1e-13);
    expect_values(sin(tensor({kInf, kNaN, 1e6}, {}, dtype)), {kNaN, kNaN, std::sin(1e6)}, 1e-7);
    expect_values(cos(tensor({-kInf, kNaN, 0.}, {}, dtype)), {kNaN, kNaN, 1}, 1e-7);
    expect_values(rsqrt(tensor({4., 0., kInf, -1.}, {}, dtype)), {0.5, kInf, 0, kNaN}, 0);
    expect_values(reciprocal(tensor({4., 0., -kInf}, {}, dtype)), {0.25, kInf, 0}, 0);
  }
}

TEST(ElementwiseTest, GeluByErfAndByTanh) {
  const Tensor x = f64s({-2, -0.5, 0.5, 2});
  expect_values(gelu(x),
                {-0.0455002638963584, -0.154268769362993, 0.345731230637007, 1.95449973610364},
                1e-14);
  expect_values(gelu(x, GeluForm::tanh), {-0.0454023059, -0.1542859902, 0.3457140098, 1.9545976941},
                1e-9);
  expect_all_close(gelu(x), gelu(x, GeluForm::tanh), 5e-4);
}

TEST(ElementwiseTest, NaNAndInfinities) {
  for (const DType dtype : {f32, f64}) {
    const double tiny = dtype == f32 ? 1e-40 : 1e-310;
    std::vector<double> values;  // long enough for whole vectors and a tail
    for (int i = 0; i < 7; ++i)
      for (const double value : {kNaN, -kInf, kInf, 0., tiny, 3e38}) values.push_back(value);
    std::vector<double> is_nan, is_inf, is_finite;
    for (const double value : values) {
      is_nan.push_back(std::isnan(value));
      is_inf.push_back(std::isinf(value));
      is_finite.push_back(std::isfinite(value));
    }
    const Tensor x = tensor(values, {}, dtype);
    expect_values(isnan(x), is_nan, 0);
    expect_values(isinf(x), is_inf, 0);
    expect_values(isfinite(x), is_finite, 0);
  }
  EXPECT_EQ(isnan(f32s({1})).dtype(), boolean);
  for (const Tensor& x : {i32s({0, 5}), tensor({true, false})}) {
    expect_values(isnan(x), {0, 0}, 0);
    expect_values(isinf(x), {0, 0}, 0);
    expect_values(isfinite(x), {1, 1}, 0);
  }
}

TEST(ElementwiseTest, ClipBoundsValuesAndPassesNaN) {
  expect_values(clip(f64s({-kInf, -2, -1, 0, 2, 3, kInf, kNaN}), -1, 2.),
                {-1, -1, -1, 0, 2, 2, 2, kNaN}, 0);
  expect_values(clip(i32s({-5, 0, 5}), -1, 3), {-1, 0, 3}, 0);
  expect_values(clip(f64s({0, 5, 10}), 7, 3), {3, 3, 3}, 0);  // high wins, as in NumPy
  expect_values(clip(f64s({0, 0, 5}), f64s({kNaN, 1, 1}), f64s({1, kNaN, 2})), {kNaN, kNaN, 2}, 0);
  const Dim batch("batch", 2), feature("feature", 3);
  const Tensor x = tensor({1., 2., 3., 4., 5., 6.}, {batch, feature});
  expect_values(clip(x, tensor({2., 5.}, {batch}), tensor({2., 5., 5.5}, {feature})),
                {2, 2, 3, 2, 5, 5.5}, 0);
}

TEST(ElementwiseTest, ErrorsOfClip) {
  EXPECT_EQ(message_of<ArgumentError>([] { return clip(2.0, 0, 1); }),
            "clip: takes a tensor, but was given the number 2.0; write scalar(2.0)");
  EXPECT_EQ(message_of<DTypeError>([] { return clip(i32s({1}), 0, 0.5); }),
            "clip: the literal 0.5 is floating, but x is i32[1]; cast the tensor, e.g. cast(x, "
            "f32)");
  EXPECT_EQ(message_of<DTypeError>([] { return clip(f64s({1}), i32s({0}), 1); }),
            "clip: dtypes differ: x f64[1], low i32[1]; cast one of them, e.g. cast(low, f64)");
  EXPECT_EQ(message_of<ShapeError>([] {
              return clip(f64s({1, 2}), 0, f64s({1, 2, 3}));
            }),
            "clip: sizes differ: x f64[2], high f64[3]; axis -1 has sizes 2 and 3, which must be "
            "equal, or one of them 1");
  EXPECT_EQ(message_of<DTypeError>([] { return rsqrt(i32s({1})); }),
            "rsqrt: takes floats, but x is i32[1]; cast it, e.g. cast(x, f32)");
  EXPECT_EQ(message_of<DTypeError>([] { return gelu(i32s({1}), GeluForm::tanh); }),
            "gelu: takes floats, but x is i32[1]; cast it, e.g. cast(x, f32)");
  EXPECT_EQ(message_of<ArgumentError>([] { return isfinite(2); }),
            "isfinite: takes a tensor, but was given the number 2; write scalar(2)");
}

TEST(ElementwiseTest, IntegersWrapAround) {
  constexpr std::int32_t kMaxI32 = std::numeric_limits<std::int32_t>::max();
  constexpr std::int32_t kLeast = std::numeric_limits<std::int32_t>::min();
  const Tensor x = i32s({kMaxI32, kLeast});
  expect_values(x + i32s({1, -1}), {kLeast, kMaxI32}, 0);
  expect_values(neg(x), {-kMaxI32, kLeast}, 0);
  expect_values(abs(x), {kMaxI32, kLeast}, 0);
  expect_values(square(x), {1, 0}, 0);
}

TEST(ElementwiseTest, PowerOfIntegers) {
  expect_values(pow(i32s({2, -3, 7, 1, -1, -1, 2, 0}), i32s({10, 3, 0, -5, -3, -2, -1, -1})),
                {1024, -27, 1, 1, -1, 1, 0, 0}, 0);
}

TEST(ElementwiseTest, LogicOnBooleans) {
  const Tensor a = tensor({true, true, false, false}), b = tensor({true, false, true, false});
  expect_values(a && b, {1, 0, 0, 0});
  expect_values(a || b, {1, 1, 1, 0});
  expect_values(logical_xor(a, b), {0, 1, 1, 0});
  expect_values(!a, {0, 0, 1, 1});
  expect_values(a == b, {1, 0, 0, 1});
}

// ---- Literals -----------------------------------------------------------------------------------

TEST(ElementwiseTest, ALiteralTakesTheTensorsDType) {
  EXPECT_EQ((f64s({1}) + 0.1).to_vector<double>()[0], 1.1);
  EXPECT_EQ((2 * f32s({1})).dtype(), f32);
  EXPECT_EQ((i64s({1}) + 1).dtype(), i64);
  EXPECT_EQ((10 - i32s({1, 2})).to_vector<std::int32_t>(), (std::vector<std::int32_t>{9, 8}));
  EXPECT_EQ((i64s({1}) + 9007199254740993).to_vector<std::int64_t>()[0], 9007199254740994);
  expect_values(tensor({true, false}) == true, {1, 0});
}

TEST(ElementwiseTest, InATraceALiteralIsRecordedNotCaptured) {
  const TensorType type(f64, {2});
  const RecordedGraph f =
      record_graph("f", {type}, [](const Tensors& x) { return Tensors{x[0] * 3.0 + 1}; });
  EXPECT_TRUE(f.captured.empty());
  DimEnv env;
  expect_values(replay(*f.graph, Tensors{f64s({1, 2})}, env)[0], {4, 7}, 0);
}

TEST(ElementwiseTest, LiteralsThatTheDTypeCannotHoldAreErrors) {
  const Tensor ints = i32s({1, 2, 3}), flags = tensor({true, false});
  EXPECT_EQ(
      message_of<DTypeError>([&] { return ints + 0.5; }),
      "add: the literal 0.5 is floating, but lhs is i32[3]; cast the tensor, e.g. cast(lhs, f32)");
  EXPECT_EQ(
      message_of<DTypeError>([&] { return 2.0 * ints; }),
      "mul: the literal 2.0 is floating, but rhs is i32[3]; cast the tensor, e.g. cast(rhs, f32)");
  EXPECT_EQ(message_of<DTypeError>([&] { return ints < 3000000000; }),
            "less: the literal 3000000000 is out of range, but lhs is i32[3]; cast the tensor, "
            "e.g. cast(lhs, i64)");
  EXPECT_EQ(message_of<DTypeError>([&] { return flags == 0.5; }),
            "equal: the literal 0.5 is floating, but lhs is boolean[2]; cast the tensor, e.g. "
            "cast(lhs, f32)");
  EXPECT_EQ(message_of<DTypeError>([&] { return flags == 2; }),
            "equal: the literal 2 is neither 0 nor 1, but lhs is boolean[2]; cast the tensor, e.g. "
            "cast(lhs, i32)");
}

TEST(ElementwiseTest, NumbersAloneAreNoOperands) {
  EXPECT_EQ(message_of<ArgumentError>([] { return add(1, 2.5); }),
            "add: both operands are numbers, 1 and 2.5; one must be a tensor, e.g. scalar(1)");
  EXPECT_EQ(message_of<ArgumentError>([] { return reel::exp(Arg(2.0)); }),
            "exp: takes a tensor, but was given the number 2.0; write scalar(2.0)");
}

// ---- dtypes -------------------------------------------------------------------------------------

TEST(ElementwiseTest, DTypesMustBeEqual) {
  EXPECT_EQ(message_of<DTypeError>([] { return ones({3}) + range(3); }),
            "add: dtypes differ: lhs f32[3], rhs i32[3]; cast one of them, e.g. cast(rhs, f32)");
  EXPECT_EQ(message_of<DTypeError>([] { return ones({3}, f64) < ones({}, f32); }),
            "less: dtypes differ: lhs f64[3], rhs f32[]; cast one of them, e.g. cast(rhs, f64)");
}

TEST(ElementwiseTest, OpsTakeOnlyDTypesThatMakeSense) {
  const Tensor flags = tensor({true, false});
  EXPECT_EQ(message_of<DTypeError>([] { return exp(range(3)); }),
            "exp: takes floats, but x is i32[3]; cast it, e.g. cast(x, f32)");
  EXPECT_EQ(message_of<DTypeError>([&] { return flags + flags; }),
            "add: takes numbers, but lhs is boolean[2]; cast it, e.g. cast(lhs, f32)");
  EXPECT_EQ(message_of<DTypeError>([&] { return neg(flags); }),
            "neg: takes numbers, but x is boolean[2]; cast it, e.g. cast(x, f32)");
  EXPECT_EQ(message_of<DTypeError>([] { return ones({3}) % ones({3}); }),
            "remainder: takes integers, but lhs is f32[3]; cast it, e.g. cast(lhs, i32)");
  EXPECT_EQ(message_of<DTypeError>([] { return ones({3}) && ones({3}); }),
            "logical_and: takes booleans, but lhs is f32[3]; cast it, e.g. cast(lhs, boolean)");
}

// ---- Buffers ------------------------------------------------------------------------------------

TEST(ElementwiseTest, TemporariesGiveTheirBufferToTheResult) {
  Tensor x = f32s({1, 2, 3});
  const void* buffer = x.data<float>();
  const Tensor y = std::move(x) * 2.0;
  EXPECT_EQ(y.data<float>(), buffer);
  expect_values(y, {2, 4, 6});
}

TEST(ElementwiseTest, ATemporaryThatIsSharedKeepsItsValues) {
  Tensor x = f32s({1, 2, 3});
  const Tensor other = x;
  const Tensor y = std::move(x) + 1;
  expect_values(other, {1, 2, 3});
  expect_values(y, {2, 3, 4});
}

TEST(ElementwiseTest, ATemporaryMayBeBothOperands) {
  Tensor x = f32s({1, 2, 3});
  expect_values(mul(std::move(x), std::move(x)), {1, 4, 9});
}

// ---- Gradients where there is a choice ----------------------------------------------------------

TEST(ElementwiseTest, EqualOperandsShareTheGradientOfMaximum) {
  const Tensors at = {f64s({1, 2, 3}), f64s({3, 2, 1})};
  const Tensors of_maximum = gradients([](const Tensors& x) { return maximum(x[0], x[1]); }, at);
  expect_values(of_maximum[0], {0, 0.5, 1}, 0);
  expect_values(of_maximum[1], {1, 0.5, 0}, 0);
  const Tensors of_minimum = gradients([](const Tensors& x) { return minimum(x[0], x[1]); }, at);
  expect_values(of_minimum[0], {1, 0.5, 0}, 0);
  expect_values(of_minimum[1], {0, 0.5, 1}, 0);
}

TEST(ElementwiseTest, NaNTakesTheGradientOfMaximumAndMinimum) {
  const Tensors at = {f64s({kNaN, 1, kNaN, kNaN}), f64s({1, kNaN, kNaN, kInf})};
  for (Tensor (*f)(const Arg&, const Arg&) : {maximum, minimum}) {
    const auto loss = [f](const std::pair<Tensor, Tensor>& x) {
      return sum(f(x.first, x.second) * tensor({1., 2., 4., 8.}, {}, f64));
    };
    for (const auto& [a, b] :
         {grad(loss)(std::pair{at[0], at[1]}), jit(grad(loss))(std::pair{at[0], at[1]})}) {
      expect_values(a, {1, 0, 2, 8}, 0);
      expect_values(b, {0, 2, 2, 0}, 0);
    }
  }
}

TEST(ElementwiseTest, NaNTakesTheGradientOfClip) {
  const Tensors x = {f64s({kNaN, 0, 0, kNaN}), f64s({-1, kNaN, -1, kNaN}), f64s({1, 1, kNaN, 1})};
  const Tensors g = gradients([](const Tensors& x) { return clip(x[0], x[1], x[2]); }, x);
  expect_values(g[0], {1, 0, 0, 1}, 0);
  expect_values(g[1], {0, 1, 0, 0}, 0);
  expect_values(g[2], {0, 0, 1, 0}, 0);
}

TEST(ElementwiseTest, KinksHaveGradientZero) {
  expect_values(gradients([](const Tensors& x) { return abs(x[0]); }, {f64s({-2, 0, 2})})[0],
                {-1, 0, 1}, 0);
  expect_values(gradients([](const Tensors& x) { return relu(x[0]); }, {f64s({-2, 0, 2, kNaN})})[0],
                {0, 0, 1, 1}, 0);
}

TEST(ElementwiseTest, StepsHaveGradientZero) {
  const Tensor x = f64s({-1.5, 0, 2, kNaN});
  for (Tensor (*f)(const Arg&) : {floor, ceil, round, sign})
    expect_values(grad([f](const Tensor& x) { return sum(f(x)); })(x), {0, 0, 0, 0}, 0);
  expect_values(grad([](const Tensor& x) { return sum(floor_divide(x, 2)); })(x), {0, 0, 0, 0}, 0);
  expect_values(jit(grad([](const Tensor& x) { return sum(round(x)); }))(x), {0, 0, 0, 0}, 0);
}

TEST(ElementwiseTest, TheGradientOfModPassesAndCountsTheDivisor) {
  const Tensors g = gradients([](const Tensors& x) { return mod(x[0], x[1]); },
                              {f64s({7, -7, 7}), f64s({2, 2, -2})});
  expect_values(g[0], {1, 1, 1}, 0);
  expect_values(g[1], {-3, 4, 4}, 0);
}

TEST(ElementwiseTest, TheGradientOfClipPassesOnItsBounds) {
  const Tensor x = f64s({-2, -1, 0, 2, 3, kNaN});
  expect_values(gradients([](const Tensors& x) { return clip(x[0], -1, 2); }, {x})[0],
                {0, 1, 1, 1, 0, 1}, 0);
  const Tensors g = gradients([](const Tensors& x) { return clip(x[0], x[1], x[2]); },
                              {x, scalar(-1., f64), scalar(2., f64)});
  expect_values(g[1], {1}, 0);
  expect_values(g[2], {1}, 0);
}

TEST(ElementwiseTest, TheGradientOfSoftplusIsSigmoid) {
  const Tensor x = f32s({-1000, -1, 0, 1, 1000});
  expect_values(gradients([](const Tensors& x) { return softplus(x[0]); }, {x})[0],
                {0, 1 / (1 + std::exp(1.)), 0.5, 1 / (1 + std::exp(-1.)), 1}, 1e-6);
}

TEST(ElementwiseTest, TheGradientOfGeluSaturates) {
  const Tensor x = f32s({-kInf, -1000, 0, 1000, kInf});
  expect_values(gradients([](const Tensors& x) { return gelu(x[0]); }, {x})[0], {0, 0, 0.5, 1, 1},
                1e-6);
}

TEST(ElementwiseTest, PowerHasFiniteGradientsAtZero) {
  const Tensors g = gradients([](const Tensors& x) { return pow(x[0], x[1]); },
                              {f64s({0, 0, 0, 2, 2}), f64s({0, 1, 2, 0, 3})});
  expect_values(g[0], {0, 1, 0, 0, 12}, 1e-13);
  expect_values(g[1], {0, 0, 0, std::log(2), 8 * std::log(2)}, 1e-13);
  expect_values(gradients([](const Tensors& x) { return pow(x[0], 2.0); }, {f64s({-3, 0, 3})})[0],
                {-6, 0, 6}, 0);
}

TEST(ElementwiseTest, PowerCanBeDifferentiatedTwiceAtExponentZero) {
  // d²/da db of a^b at b = 0 is 1 / a.
  RecordingTape outer;
  const Tensor a = f64s({2, 4}), b = f64s({0, 0});
  outer.watch(b);
  Tensor slope;
  {
    RecordingTape inner;
    inner.watch(a);
    slope = inner.gradient({pow(a, b)}, {Tensor()}, {a})[0];
  }
  expect_values(outer.gradient({slope}, {Tensor()}, {b})[0], {0.5, 0.25}, 1e-13);
}

TEST(ElementwiseTest, SaturatedFunctionsHaveGradientZero) {
  const Tensor x = f32s({-1000, 1000});
  expect_values(gradients([](const Tensors& x) { return tanh(x[0]); }, {x})[0], {0, 0}, 0);
  expect_values(gradients([](const Tensors& x) { return sigmoid(x[0]); }, {x})[0], {0, 0}, 0);
}

TEST(GeluTest, TanhFormHoldsFarFromZero) {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor x = tensor({-inf, -1e200, -1e13, 1e13, 1e200}, {}, f64);
  expect_values(gelu(x, GeluForm::tanh), {0, 0, 0, 1e13, 1e200});
  expect_values(grad([](const Tensor& x) { return sum(gelu(x, GeluForm::tanh)); })(x),
                {0, 0, 0, 1, 1});
}

}  // namespace
}  // namespace reel
