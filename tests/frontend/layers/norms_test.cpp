// Activation functions of activations.h, RmsNorm, GroupNorm, and Linear between equal dims.
#include <cmath>
#include <limits>

#include "reel/core/functions/activations.h"
#include "reel/frontend/layers/group_norm.h"
#include "reel/frontend/layers/rms_norm.h"
#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN();
const double kInf = std::numeric_limits<double>::infinity();

class ActivationsTest : public InEveryMode {};
REEL_IN_EVERY_MODE(ActivationsTest);

TEST_P(ActivationsTest, ValuesAreThoseOfTheFormulas) {
  const Tensor x = tensor({-800.0, -2.0, 0.0, 0.5, 800.0}, f64);
  const auto sigmoid = [](double z) { return 1 / (1 + std::exp(-z)); };
  const double e = std::exp(-2.0) - 1;
  expect_values(run([](const Tensor& x) { return silu(x); })(x),
                {0, -2 * sigmoid(-2), 0, 0.5 * sigmoid(0.5), 800}, 1e-14);
  expect_values(run([](const Tensor& x) { return leaky_relu(x); })(x), {-8, -0.02, 0, 0.5, 800},
                1e-14);
  expect_values(run([](const Tensor& x) { return leaky_relu(x, 0.5); })(x), {-400, -1, 0, 0.5, 800},
                1e-14);
  expect_values(run([](const Tensor& x) { return elu(x); })(x), {-1, e, 0, 0.5, 800}, 1e-14);
  expect_values(run([](const Tensor& x) { return elu(x, 3); })(x), {-3, 3 * e, 0, 0.5, 800}, 1e-13);
}

TEST_P(ActivationsTest, SlopesAtZeroAreThoseOfTheLeft) {
  const Tensor x = tensor({0.0, 1.0, 900.0}, f64);
  const auto slopes = [&](auto f) { return run(grad([f](const Tensor& x) { return sum(f(x)); })); };
  expect_values(slopes([](const Tensor& x) { return leaky_relu(x, 0.25); })(x), {0.25, 1, 1});
  expect_values(slopes([](const Tensor& x) { return elu(x, 2); })(x), {2, 1, 1});
  expect_values(slopes([](const Tensor& x) { return silu(x); })(tensor({0.0}, f64)), {0.5});
}

TEST_P(ActivationsTest, GradientsAreDerivativesOfAnyOrder) {
  manual_seed(1);
  const Tensor x = random_normal({6}, f64), y = random_normal({6}, f64);
  using Pair = std::pair<Tensor, Tensor>;
  const auto f = [](const Pair& at) {
    const auto& [x, y] = at;
    return sum(silu(x) * y + leaky_relu(x) + elu(x, 1.5) * y + log_add_exp(x, 3 * y) +
               log_add_exp(x, 0.3));
  };
  expect_gradient_of(f, Pair{x, y}, run(grad(f))(Pair{x, y}));
  const auto g = [&](const Pair& at) {
    const Pair slopes = grad(f)(at);
    return sum(square(slopes.first) + sin(slopes.second));
  };
  expect_gradient_of(g, Pair{x, y}, run(grad(g))(Pair{x, y}));
}

TEST_P(ActivationsTest, LogAddExpNeitherOverflowsNorLosesTheSmallerOperand) {
  const Tensor a = tensor({1000.0, -1000.0, 0.0, -kInf, -kInf, kInf, kNan, 2.0}, f64);
  const Tensor b = tensor({1000.0, -1001.0, -40.0, 3.0, -kInf, 5.0, 0.0, kNan}, f64);
  const Tensor y = run([](const Tensor& a, const Tensor& b) { return log_add_exp(a, b); })(a, b);
  expect_values(y,
                {1000 + std::log(2), -1000 + std::log1p(std::exp(-1.0)), std::exp(-40.0), 3, -kInf,
                 kInf, kNan, kNan},
                1e-12);
  EXPECT_NEAR(values_of(y)[2] / std::exp(-40.0), 1, 1e-12);
}

TEST_P(ActivationsTest, LogAddExpHasItsDerivativesAtTiesAndInfinities) {
  const auto f = [](const Tensor& a, const Tensor& b) { return sum(log_add_exp(a, b)); };
  const Tensor a = tensor({1.0, -kInf, -kInf}, f64), b = tensor({1.0, 2.0, -kInf}, f64);
  expect_values(run([&](const Tensor& a, const Tensor& b) {
                  return grad([&](const Tensor& a) { return f(a, b); })(a);
                })(a, b),
                {0.5, 0, 0.5});
  // The second derivative at a tie equals the sigmoid's, 1/4.
  expect_values(run(grad([&](const Tensor& a) {
                  return sum(grad([&](const Tensor& a) { return f(a, tensor({1.0}, f64)); })(a));
                }))(tensor({1.0}, f64)),
                {0.25});
}

TEST_P(ActivationsTest, GluGatesOneHalfByTheOther) {
  const Dim batch("batch", 2), both("both", 4), half("half", 2);
  const Tensor x = tensor({{1.0, 2.0, 0.0, 100.0}, {3.0, 4.0, -100.0, 0.0}}, {batch, both}, f64);
  const Tensor y = run([&](const Tensor& x) { return glu(x, both, half); })(x);
  EXPECT_EQ(y.dims(), (Dims{batch, half}));
  expect_values(y, {0.5, 2, 0, 2}, 1e-12);
  const Tensor plain = reshape(x, {2, 4});
  expect_values(run([](const Tensor& x) { return glu(x, -1); })(plain), {0.5, 2, 0, 2}, 1e-12);
  expect_values(run([](const Tensor& x) { return glu(x, 0); })(plain),
                {1 / (1 + std::exp(-3.0)), 2 / (1 + std::exp(-4.0)), 0, 50}, 1e-12);
}

TEST(ActivationsErrorsTest, NameTheFunction) {
  EXPECT_EQ(message_of<DTypeError>([] {
              silu(tensor({1, 2}));
            }),
            "silu: x must be f32 or f64, got i32[2]");
  EXPECT_EQ(message_of<ArgumentError>([] { elu(1.5); }),
            "elu: takes a tensor, but was given the number 1.5");
  EXPECT_EQ(message_of<ArgumentError>([] { log_add_exp(1.5, 2); }),
            "log_add_exp: both operands are numbers; one must be a tensor");
  EXPECT_THROW(glu(zeros({3}), 0), ShapeError);
}

TEST_P(ActivationsTest, EmptyTensorsAndTemporariesAreFine) {
  const Tensor none = zeros({0}, f32);
  EXPECT_EQ(run([](const Tensor& x) { return silu(x) + elu(x) + leaky_relu(x); })(none).type(),
            none.type());
  const Tensor x = tensor({-1.0, 2.0}, f64);
  expect_same_bits(run([](const Tensor& x) { return silu(x + 0.0); })(x), silu(x));
  expect_same_bits(run([](const Tensor& x) { return log_add_exp(x + 0.0, x * 2.0); })(x),
                   log_add_exp(x, x * 2.0));
}

class RmsNormTest : public InEveryMode {};
REEL_IN_EVERY_MODE(RmsNormTest);

TEST_P(RmsNormTest, DividesByTheRootMeanSquare) {
  const Dim batch("batch", 2), feature("feature", 2);
  RmsNorm layer = RmsNorm::init(feature, {.epsilon = 0.5, .dtype = f64});
  layer.scale = tensor({1.0, 2.0}, {feature}, f64);
  const Tensor x = tensor({{1.0, 7.0}, {0.0, 0.0}}, {batch, feature}, f64);
  const Tensor y = run([](const RmsNorm& layer, const Tensor& x) { return layer(x); })(layer, x);
  const double r = std::sqrt(25.5);
  expect_values(y, {1 / r, 14 / r, 0, 0}, 1e-14);
  EXPECT_EQ(y.type(), x.type());
}

TEST_P(RmsNormTest, PaddingDoesNotCountInGradients) {
  manual_seed(2);
  const Dim batch("batch", 3), time("time", tensor({2, 0, 1}, {batch})), feature("feature", 4);
  const RmsNorm layer = RmsNorm::init(feature, {.dtype = f64});
  const Tensor x = where(mask(time), random_normal({batch, time, feature}, f64), kNan);
  const auto loss = [&](const RmsNorm& layer) { return sum(sin(layer(x))); };
  expect_gradient_of(loss, layer, run(grad(loss))(layer));
}

class GroupNormTest : public InEveryMode {};
REEL_IN_EVERY_MODE(GroupNormTest);

TEST_P(GroupNormTest, NormalisesEachGroupOverTimeWithoutPadding) {
  manual_seed(3);
  const Dim batch("batch", 3), time("time", tensor({4, 0, 2}, {batch})), channel("channel", 6);
  GroupNorm layer = GroupNorm::init(3, channel, {.epsilon = 0.1, .dtype = f64});
  layer.scale = random_normal({channel}, f64);
  layer.bias = random_normal({channel}, f64);
  const Tensor x = where(mask(time), random_normal({batch, time, channel}, f64), kNan);
  const Tensor y =
      run([&](const GroupNorm& layer, const Tensor& x) { return layer(x, {time}); })(layer, x);
  EXPECT_EQ(y.type(), x.type());
  const std::vector<double> in = values_of(x), scale = values_of(layer.scale),
                            bias = values_of(layer.bias);
  std::vector<double> expected(in.size(), 0.0);
  const int lengths[] = {4, 0, 2};
  for (int b = 0; b < 3; ++b)
    for (int g = 0; g < 3; ++g) {
      const auto at = [&](int t, int c) { return (b * 4 + t) * 6 + g * 2 + c; };
      double sum = 0, squares = 0;
      const double count = lengths[b] * 2;
      for (int t = 0; t < lengths[b]; ++t)
        for (int c = 0; c < 2; ++c) sum += in[at(t, c)];
      for (int t = 0; t < lengths[b]; ++t)
        for (int c = 0; c < 2; ++c) squares += std::pow(in[at(t, c)] - sum / count, 2);
      for (int t = 0; t < lengths[b]; ++t)
        for (int c = 0; c < 2; ++c)
          expected[at(t, c)] =
              (in[at(t, c)] - sum / count) / std::sqrt(squares / count + 0.1) * scale[g * 2 + c] +
              bias[g * 2 + c];
    }
  expect_values(mask_padding(y), expected, 1e-12);
  const auto loss = [&](const std::pair<GroupNorm, Tensor>& at) {
    return sum(sin(at.first(at.second, {time})));
  };
  const std::pair clean{layer, mask_padding(x)}, dirty{layer, x};
  const auto gradient = run(grad(loss))(dirty);
  expect_gradient_of(loss, clean, std::pair{gradient.first, mask_padding(gradient.second)});
}

TEST_P(GroupNormTest, OneGroupWithoutOtherDimsIsALayerNorm) {
  manual_seed(4);
  const Dim batch("batch", 2), time("time", 3), channel("channel", 4);
  const Tensor x = random_normal({batch, channel, time}, f64);
  const GroupNorm group = GroupNorm::init(1, channel, {.dtype = f64});
  const LayerNorm whole = LayerNorm::init(channel, {.dtype = f64});
  expect_all_close(run([](const GroupNorm& layer, const Tensor& x) { return layer(x); })(group, x),
                   whole(x), 1e-13);
}

TEST(NormErrorsTest, NameTheLayer) {
  const Dim channel("channel", 6), time("time", 2);
  EXPECT_EQ(message_of<ArgumentError>([&] { GroupNorm::init(4, channel); }),
            "GroupNorm: 4 groups do not divide channel channel=6");
  EXPECT_EQ(message_of<ArgumentError>([&] { GroupNorm::init(2, channel, {.epsilon = -1}); }),
            "GroupNorm: epsilon must not be negative, got -1");
  EXPECT_EQ(
      message_of<ArgumentError>([&] { GroupNorm::init(2, channel)(zeros({channel}), {channel}); }),
      "GroupNorm: over lists the dim of channels, channel=6; give the other dims only");
  EXPECT_EQ(message_of<ArgumentError>([&] { RmsNorm::init(channel, {.epsilon = -1}); }),
            "RmsNorm: epsilon must not be negative, got -1");
  EXPECT_EQ(message_of<ShapeError>([&] { RmsNorm::init(channel)(zeros({time})); }),
            "RmsNorm: x f32[time=2] has no dim channel=6, which the layer takes; make the layer "
            "with a dim of x");
}

class EqualDimsTest : public InEveryMode {};
REEL_IN_EVERY_MODE(EqualDimsTest);

TEST_P(EqualDimsTest, LinearKeepsTheDimOfItsArgument) {
  manual_seed(5);
  const Dim batch("batch", 2), model("model", 3);
  Linear layer = Linear::init(model, model, {.dtype = f64});
  layer.bias = tensor({1.0, 2.0, 3.0}, {model}, f64);
  const Tensor x = random_normal({batch, model}, f64);
  const auto f = [](const Linear& layer, const Tensor& x) { return layer(x); };
  const Tensor y = run(f)(layer, x);
  EXPECT_EQ(y.dims(), (Dims{batch, model}));
  const std::vector<double> w = values_of(layer.weight), in = values_of(x);
  std::vector<double> expected;
  for (int b = 0; b < 2; ++b)
    for (int o = 0; o < 3; ++o) {
      double sum = o + 1;
      for (int i = 0; i < 3; ++i) sum += in[b * 3 + i] * w[i * 3 + o];
      expected.push_back(sum);
    }
  expect_values(y, expected, 1e-13);
  const auto loss = [&](const Linear& layer) { return sum(sin(layer(layer(x)))); };
  expect_gradient_of(loss, layer, run(grad(loss))(layer));
}

}  // namespace
}  // namespace reel
