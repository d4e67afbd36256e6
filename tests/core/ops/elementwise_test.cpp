#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "reel/autodiff/tape.h"
#include "reel/core/errors.h"
#include "reel/core/graph_builder.h"
#include "reel/core/ops.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Tensor f64s(const std::vector<double>& values) { return tensor(values); }
Tensor f32s(const std::vector<double>& values) { return tensor(values, {}, f32); }
Tensor i32s(const std::vector<std::int32_t>& values) { return tensor(values); }
Tensor i64s(const std::vector<std::int64_t>& values) { return tensor(values); }

/// The gradients of the sum of f's elements, each element weighted by 1.
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

TEST(ElementwiseTest, IntegersWrapAround) {
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  constexpr std::int32_t kLeast = std::numeric_limits<std::int32_t>::min();
  const Tensor x = i32s({kMost, kLeast});
  expect_values(x + i32s({1, -1}), {kLeast, kMost}, 0);
  expect_values(neg(x), {-kMost, kLeast}, 0);
  expect_values(abs(x), {kMost, kLeast}, 0);
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

TEST(ElementwiseTest, ATemporaryTwice) {
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

TEST(ElementwiseTest, KinksHaveGradientZero) {
  expect_values(gradients([](const Tensors& x) { return abs(x[0]); }, {f64s({-2, 0, 2})})[0],
                {-1, 0, 1}, 0);
  expect_values(gradients([](const Tensors& x) { return relu(x[0]); }, {f64s({-2, 0, 2})})[0],
                {0, 0, 1}, 0);
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

}  // namespace
}  // namespace reel
