// Layers without a state: Linear, Embedding, LayerNorm, Dropout, and the initial values of their
// parameters.
#include <limits>

#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN();

class LinearTest : public InEveryMode {};
REEL_IN_EVERY_MODE(LinearTest);

TEST_P(LinearTest, IsAProductAndABias) {
  const Dim batch("batch", 2), in("in", 3), out("out", 2);
  Linear layer = Linear::init(in, out, {.dtype = f64});
  layer.weight = tensor({{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}}, {in, out}, f64);
  layer.bias = tensor({10.0, 20.0}, {out}, f64);
  const auto f = run([](const Linear& layer, const Tensor& x) { return layer(x); });
  const Tensor x = tensor({{1.0, 0.0, -1.0}, {0.0, 2.0, 1.0}}, {batch, in}, f64);
  const Tensor y = f(layer, x);
  EXPECT_EQ(y.type(), TensorType(f64, {batch, out}));
  expect_values(y, {6, 16, 21, 34}, 1e-15);
  expect_same_bits(f(layer, transpose(x, {in, batch})), y);
  layer.bias.reset();
  expect_values(f(layer, x), {-4, -4, 11, 14}, 1e-15);
}

TEST_P(LinearTest, GradientIgnoresPadding) {
  manual_seed(1);
  const Dim batch("batch", 2), time("time", tensor({3, 1}, {batch})), in("in", 3), out("out", 2);
  const Linear layer = Linear::init(in, out, {.dtype = f64});
  const Tensor x = where(mask(time), random_normal({batch, time, in}, f64), scalar(kNan, f64));
  const auto loss = [&](const Linear& layer) { return mean(square(layer(x))); };
  const Linear gradient = run(grad(loss))(layer);
  expect_gradient_of(loss, layer, gradient);
  EXPECT_TRUE(gradient.in == in && gradient.out == out);
}

TEST(LayersTest, WeightsAreUniformWithinGlorotsLimit) {
  manual_seed(2);
  const Dim in("in", 200), out("out", 100);
  const double limit = std::sqrt(6.0 / 300);
  const Tensor weight = Linear::init(in, out).weight;
  EXPECT_EQ(weight.type(), TensorType(f32, {in, out}));
  double largest = 0;
  for (const double w : values_of(weight)) largest = std::max(largest, std::abs(w));
  EXPECT_LE(largest, limit);
  EXPECT_GT(largest, 0.999 * limit);
  expect_values(mean(weight), {0}, 0.01 * limit);
  expect_values(mean(square(weight)), {limit * limit / 3}, 0.01 * limit * limit);
  expect_values(*Linear::init(in, out).bias, std::vector<double>(100, 0.0));
}

TEST(LayersTest, ParametersAreNamedByFieldsAndKeepTheirDims) {
  const Dim in("in", 2), out("out", 3);
  EXPECT_EQ(tree_paths(Linear::init(in, out)), (std::vector<std::string>{"weight", "bias"}));
  EXPECT_EQ(tree_paths(Linear::init(in, out, {.has_bias = false})),
            (std::vector<std::string>{"weight"}));
  EXPECT_EQ(tree_paths(LayerNorm::init(in)), (std::vector<std::string>{"scale", "bias"}));
  EXPECT_EQ(tree_paths(Embedding::init(in, out)), (std::vector<std::string>{"weight"}));
}

TEST(LayersTest, ErrorsNameTheLayerAndTheDim) {
  const Dim batch("batch", 2), in("in", 3);
  EXPECT_EQ(message_of<ArgumentError>([&] { return Linear::init(3, in); }),
            "Linear: dim in must have a name, got 3; give it Dim(\"in\", 3)");
  EXPECT_EQ(message_of<ArgumentError>([&] {
              return Embedding::init(in, Dim("time", tensor({1, 2}, {batch})));
            }),
            "Embedding: dim feature must have one known size, got time[batch=2]");
  EXPECT_EQ(message_of<ArgumentError>([&] { return LayerNorm::init(Dim("feature")); }),
            "LayerNorm: dim feature must have one known size, got feature");
  EXPECT_EQ(message_of<ArgumentError>([&] { return LayerNorm::init(in, {.epsilon = -1}); }),
            "LayerNorm: epsilon must not be negative, got -1");
  EXPECT_EQ(message_of<ArgumentError>([&] { return Dropout{.rate = 1.5}(zeros({in})); }),
            "dropout: rate must lie in [0, 1], got 1.5");
  EXPECT_EQ(message_of<ArgumentError>([] {
              return glorot_uniform({0, 0}, 0, 0);
            }),
            "glorot_uniform: fans must be positive, got 0 and 0");
  EXPECT_THROW(Linear::init(in, Dim("out", 2))(zeros({batch})), ShapeError);
}

class EmbeddingTest : public InEveryMode {};
REEL_IN_EVERY_MODE(EmbeddingTest);

TEST_P(EmbeddingTest, GivesTheRowOfEachSymbol) {
  const Dim batch("batch", 2), time("time", tensor({2, 1}, {batch})), vocab("vocab", 3),
      feature("feature", 2);
  Embedding layer = Embedding::init(vocab, feature, {.dtype = f64});
  layer.weight = tensor({1.0, 2.0, 3.0, 4.0, 5.0, 6.0}, {vocab, feature}, f64);
  const Tensor symbols = tensor({2, 0, 2, 99}, {batch, time});  // 99 is padding
  const auto f = run([](const Embedding& layer, const Tensor& symbols) { return layer(symbols); });
  const Tensor y = f(layer, symbols);
  EXPECT_EQ(y.type(), TensorType(f64, {batch, time, feature}));
  expect_values(y, {5, 6, 1, 2, 5, 6, 0, 0});
  const auto loss = [](const Embedding& layer, const Tensor& symbols) {
    return sum(layer(symbols));
  };
  expect_values(run(grad(loss))(layer, symbols).weight, {1, 1, 0, 0, 2, 2});
  EXPECT_THROW(f(layer, tensor({3}, {Dim("one", 1)})), IndexError);
}

class LayerNormTest : public InEveryMode {};
REEL_IN_EVERY_MODE(LayerNormTest);

TEST_P(LayerNormTest, NormalisesEachPositionAlone) {
  const Dim batch("batch", 2), feature("feature", 4);
  LayerNorm layer = LayerNorm::init(feature, {.epsilon = 0.5, .dtype = f64});
  layer.scale = tensor({1.0, 2.0, 3.0, 4.0}, {feature}, f64);
  layer.bias = tensor({0.0, 0.0, 1.0, 1.0}, {feature}, f64);
  const Tensor x = tensor({{1.0, 3.0, 5.0, 7.0}, {2.0, 2.0, 2.0, 2.0}}, {batch, feature}, f64);
  const auto f = run([](const LayerNorm& layer, const Tensor& x) { return layer(x); });
  const double r = std::sqrt(5.5);  // the variance is 5
  expect_values(f(layer, x), {-3 / r, -2 / r, 1 + 3 / r, 1 + 12 / r, 0, 0, 1, 1}, 1e-14);
  EXPECT_EQ(f(layer, x).type(), x.type());
}

TEST_P(LayerNormTest, GradientIsTheDerivativeWithoutPadding) {
  manual_seed(3);
  const Dim batch("batch", 3), time("time", tensor({2, 0, 1}, {batch})), feature("feature", 4);
  LayerNorm layer = LayerNorm::init(feature, {.dtype = f64});
  layer.scale = random_normal({feature}, f64);
  const Tensor weight = random_normal({feature}, f64);
  const Tensor x = random_normal({batch, time, feature}, f64);
  const Tensor dirty = where(mask(time), x, scalar(kNan, f64));
  const auto loss = [&](const std::pair<LayerNorm, Tensor>& at) {
    return sum(at.first(at.second) * weight);
  };
  const auto both = run(value_and_grad(loss));
  const auto [value, gradient] = both(std::pair{layer, x});
  expect_gradient_of(loss, std::pair{layer, x}, gradient);
  const auto [dirty_value, dirty_gradient] = both(std::pair{layer, dirty});
  expect_same_bits(dirty_value, value);
  expect_same_bits(dirty_gradient.first.scale, gradient.first.scale);
}

class DropoutTest : public InEveryMode {};
REEL_IN_EVERY_MODE(DropoutTest);

TEST_P(DropoutTest, DropsAtItsRateAndScalesTheRest) {
  manual_seed(4);
  const Tensor x = ones({100, 100}, f64);
  const auto f = run([](const Dropout& layer, const Tensor& x) { return layer(x); });
  const Tensor y = f(Dropout{.rate = 0.2}, x);
  int dropped = 0;
  for (const double value : values_of(y)) {
    if (value == 0)
      ++dropped;
    else
      EXPECT_EQ(value, 1.25);
  }
  EXPECT_NEAR(dropped, 2000, 150);                                 // ±3.75 σ
  EXPECT_NE(values_of(f(Dropout{.rate = 0.2}, x)), values_of(y));  // other elements each time
  expect_same_bits(f(Dropout{.rate = 0.2, .training = false}, x), x);
  expect_same_bits(f(Dropout{.rate = 0}, x), x);
  expect_same_bits(f(Dropout{.rate = 1}, x), zeros_like(x));
}

TEST_P(DropoutTest, GradientGoesWhereTheValueWent) {
  manual_seed(5);
  const auto f = run(value_and_grad([](const Tensor& x) {
    const Tensor y = Dropout{.rate = 0.5}(x);
    return std::pair{sum(y), y};
  }));
  const auto [value, gradient] = f(ones({50}));
  expect_same_bits(gradient, value.second);
  const auto none = run(grad([](const Tensor& x) { return sum(Dropout{.rate = 1}(x)); }));
  expect_values(none(ones({3})), {0, 0, 0});
}

TEST(LayersTest, SetTrainingReachesEveryField) {
  struct Model {
    Linear layer;
    Dropout dropout;
    std::vector<ZoneoutLstmCell> cells;
    bool is_training = true;  // another name
  };
  const Dim in("in", 2), hidden("hidden", 2);
  Model model{Linear::init(in, hidden), {}, {{LstmCell::init(in, hidden)}}};
  set_training(model, false);
  EXPECT_FALSE(model.dropout.training);
  EXPECT_FALSE(model.cells[0].training);
  EXPECT_TRUE(model.is_training);
  set_training(model.dropout, true);
  EXPECT_TRUE(model.dropout.training);
  EXPECT_FALSE(model.cells[0].training);
}

}  // namespace
}  // namespace reel
