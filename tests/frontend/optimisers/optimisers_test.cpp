// Requirements on all optimisers: the papers' steps, computed here in plain doubles, in every mode;
// trees of all kinds; one trace for a whole training step; errors.
#include <functional>
#include <tuple>

#include "reel/tests/modes.h"

namespace reel {
namespace {

using OptimisersTest = InEveryMode;
REEL_IN_EVERY_MODE(OptimisersTest);

/// Returns a parameter's next value from its value and gradient; keeps moments.
using ReferenceRule = std::function<double(double p, double g)>;

/// Gradients of five steps, which change sign and size, and include zeros.
const std::vector<std::vector<double>> kGradients{
    {0.1, -3.0, 0.0}, {0.2, 5.0, 0.0}, {-4.0, 1e-9, 0.0}, {0.2, -1.0, 2.0}, {0.7, 3.0, -1.0}};

/// Expects that five steps of an optimiser of three parameters agree with three references.
template <class Optimiser, class Run>
void expect_steps(const Run& run, Optimiser optimiser,
                  const std::function<ReferenceRule()>& reference) {
  Tensor p = tensor({1.0, -2.0, 0.5}, {}, f64);
  std::vector<double> values = values_of(p);
  const std::vector<ReferenceRule> rules{reference(), reference(), reference()};
  const auto step = run([](Tensor parameter, Optimiser o, const Tensor& gradient) {
    o.update(parameter, gradient);
    return std::pair{parameter, o};
  });
  for (const std::vector<double>& gradient : kGradients) {
    std::tie(p, optimiser) = step(p, optimiser, tensor(gradient));
    for (std::size_t i = 0; i < 3; ++i) values[i] = rules[i](values[i], gradient[i]);
    expect_values(p, values, 1e-13);
  }
  EXPECT_EQ(optimiser.step().template item<std::int64_t>(), 5);
  EXPECT_EQ(step.trace_count(), 1);
}

#define EXPECT_STEPS(optimiser, reference) \
  expect_steps([this](auto f) { return this->run(f); }, optimiser, reference)

const Tensor kParameter = zeros({3}, f64);

TEST_P(OptimisersTest, SgdWithoutMomentum) {
  EXPECT_STEPS(Sgd(kParameter, {.learning_rate = 0.1}),
               [] { return [](double p, double g) { return p - 0.1 * g; }; });
}

/// In a trace, captured parameters have other dims than arguments, which stand for the same.
TEST_P(OptimisersTest, ParametersAndGradientsMayBeCaptured) {
  const Dim row("row", 3), time("time", tensor({1, 2, 1}, {row}));
  for (const Dims& dims : {Dims{row}, Dims{row, time}}) {
    const Tensor p = ones(dims), g = ones(dims) * 2.f;
    const Tensor of_argument = run([&](Tensor gradient) {
      Tensor parameter = p;
      Sgd sgd(parameter, {.learning_rate = 0.5, .momentum = 0.5});
      sgd.update(parameter, gradient);
      return parameter;
    })(g);
    const auto [of_capture, average] = run([&](Tensor parameter) {
      Adam adam(parameter, {.learning_rate = 1, .epsilon = 1e-30});
      adam.update(parameter, g);
      Ema ema(p, {.decay = 0.5});
      ema.update(parameter);
      return std::pair{parameter, ema.average()};
    })(p);
    expect_all_close(mask_padding(of_argument), mask_padding(zeros(dims)), 1e-6);
    expect_all_close(mask_padding(of_capture), mask_padding(zeros(dims)), 1e-6);
    expect_all_close(mask_padding(average), mask_padding(zeros(dims)), 1e-6);
  }
}

TEST_P(OptimisersTest, SgdWithMomentum) {
  EXPECT_STEPS(Sgd(kParameter, {.learning_rate = 0.1, .momentum = 0.9}), [] {
    return [v = 0.0](double p, double g) mutable {
      v = 0.9 * v + g;
      return p - 0.1 * v;
    };
  });
}

TEST_P(OptimisersTest, SgdWithNesterovsMomentum) {
  EXPECT_STEPS(Sgd(kParameter, {.learning_rate = 0.1, .momentum = 0.9, .nesterov = true}), [] {
    return [v = 0.0](double p, double g) mutable {
      v = 0.9 * v + g;
      return p - 0.1 * (g + 0.9 * v);
    };
  });
}

TEST_P(OptimisersTest, SgdWithDecayAddsItToTheGradientBeforeTheMomentum) {
  EXPECT_STEPS(Sgd(kParameter,
                   {.learning_rate = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 0.2}),
               [] {
                 return [v = 0.0](double p, double g) mutable {
                   g += 0.2 * p;
                   v = 0.9 * v + g;
                   return p - 0.1 * (g + 0.9 * v);
                 };
               });
}

TEST_P(OptimisersTest, AdagradFollowsItsPaper) {
  EXPECT_STEPS(Adagrad(kParameter, {.learning_rate = 0.1, .initial_sum = 0.5, .epsilon = 1e-3}),
               [] {
                 return [s = 0.5](double p, double g) mutable {
                   s += g * g;
                   return p - 0.1 * g / (std::sqrt(s) + 1e-3);
                 };
               });
}

TEST_P(OptimisersTest, AdagradIgnoresZeroGradientsWithoutAnInitialSum) {
  EXPECT_STEPS(Adagrad(kParameter), [] {
    return [s = 0.0](double p, double g) mutable {
      s += g * g;
      return s == 0 ? p : p - 0.01 * g / (std::sqrt(s) + 1e-10);
    };
  });
}

TEST_P(OptimisersTest, LionFollowsItsPaper) {
  EXPECT_STEPS(Lion(kParameter, {.learning_rate = 0.05, .weight_decay = 0.3}), [] {
    return [m = 0.0](double p, double g) mutable {
      const double c = 0.9 * m + 0.1 * g;
      const double next = p - 0.05 * ((c > 0) - (c < 0) + 0.3 * p);
      m = 0.99 * m + 0.01 * g;
      return next;
    };
  });
}

/// Kingma & Ba (2015), algorithm 1, and the decay of Loshchilov & Hutter (2019), algorithm 2.
std::function<ReferenceRule()> adam_reference(double rate, double decay) {
  return [=] {
    return [=, m = 0.0, v = 0.0, t = 0](double p, double g) mutable {
      ++t;
      m = 0.9 * m + 0.1 * g;
      v = 0.99 * v + 0.01 * g * g;
      const double m_hat = m / (1 - std::pow(0.9, t)), v_hat = v / (1 - std::pow(0.99, t));
      return p - rate * (m_hat / (std::sqrt(v_hat) + 1e-8) + decay * p);
    };
  };
}

TEST_P(OptimisersTest, AdamFollowsItsPaper) {
  EXPECT_STEPS(Adam(kParameter, {.learning_rate = 0.05, .beta2 = 0.99}), adam_reference(0.05, 0));
}

TEST_P(OptimisersTest, AdamWFollowsItsPaper) {
  EXPECT_STEPS(AdamW(kParameter, {.learning_rate = 0.05, .beta2 = 0.99, .weight_decay = 0.1}),
               adam_reference(0.05, 0.1));
}

std::function<ReferenceRule()> rmsprop_reference(double momentum, bool centered) {
  return [=] {
    return [=, s = 0.0, m = 0.0, v = 0.0](double p, double g) mutable {
      s = 0.9 * s + 0.1 * g * g;
      m = 0.9 * m + 0.1 * g;
      const double variance = centered ? std::max(s - m * m, 0.0) : s;
      v = momentum * v + g / (std::sqrt(variance) + 1e-3);
      return p - 0.01 * v;
    };
  };
}

TEST_P(OptimisersTest, RmsPropFollowsItsLecture) {
  EXPECT_STEPS(RmsProp(kParameter, {.learning_rate = 0.01, .epsilon = 1e-3}),
               rmsprop_reference(0, false));
}

TEST_P(OptimisersTest, RmsPropCenteredWithMomentum) {
  EXPECT_STEPS(RmsProp(kParameter,
                       {.learning_rate = 0.01, .epsilon = 1e-3, .momentum = 0.8, .centered = true}),
               rmsprop_reference(0.8, true));
}

TEST_P(OptimisersTest, RmsPropCenteredStaysFiniteWhereGradientsAreEqual) {
  Tensor p = zeros({1});
  RmsProp optimiser(p, {.centered = true});
  const auto step = run([](Tensor parameter, RmsProp<Tensor> o) {
    o.update(parameter, full({1}, 0.1));
    return std::pair{parameter, o};
  });
  for (int i = 0; i < 300; ++i) std::tie(p, optimiser) = step(p, optimiser);
  EXPECT_TRUE(std::isfinite(p.item<float>()));
}

// ---- Trees --------------------------------------------------------------------------

struct Layer {
  Tensor weight, bias;
};
struct Network {
  std::vector<std::vector<Layer>> layers;
  std::map<std::string, Tensor> heads;
  std::optional<Layer> extra;
  None none;
  Tensor count;
  Dim dim;
  bool is_deep = true;
};

const Dim kDim("dim", 2);

Network network(double value, DType dtype = f32) {
  const auto layer = [&] { return Layer{full({kDim}, value, dtype), full({}, value, f64)}; };
  return {{{layer(), layer()}, {}, {layer()}},
          {{"a", full({3}, value)}, {"b", full({1}, value)}},
          layer(),
          {},
          tensor({7, 8}, {kDim}),
          kDim};
}

template <class O>
class EveryOptimiser : public ::testing::Test {};
using Optimisers = ::testing::Types<Sgd<Network>, Adam<Network>, AdamW<Network>, RmsProp<Network>,
                                    Adagrad<Network>, Lion<Network>>;
TYPED_TEST_SUITE(EveryOptimiser, Optimisers);

TYPED_TEST(EveryOptimiser, WalksTreesOfAllKinds) {
  Network model = network(1), traced = model;
  TypeParam optimiser(model);
  const auto step = [](Network m, TypeParam o) {
    o.update(m, network(0.5));
    return std::pair{m, o};
  };
  std::tie(model, optimiser) = step(model, optimiser);
  auto jitted = jit(step);
  traced = jitted(traced, TypeParam(traced)).first;

  const TreeLeaves before = flatten(network(1)), after = flatten(model), same = flatten(traced);
  const std::vector<std::string> paths = leaf_paths(model);
  int updated = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i].kind != TreeLeaf::Kind::tensor) continue;
    SCOPED_TRACE(paths[i]);
    expect_same_bits(after[i].tensor, same[i].tensor);
    EXPECT_EQ(after[i].tensor.dtype(), before[i].tensor.dtype());
    if (is_float(before[i].tensor.dtype())) {
      ++updated;
      EXPECT_LT(values_of(after[i].tensor)[0], 1);
    } else {
      expect_same_bits(after[i].tensor, before[i].tensor);
    }
  }
  EXPECT_EQ(updated, 10);
  EXPECT_TRUE(model.dim == kDim && model.is_deep);
}

TYPED_TEST(EveryOptimiser, AnotherLearningRateTracesNothingAgain) {
  auto step = jit([](Network m, TypeParam o) {
    o.update(m, network(0.5));
    return std::pair{m, o};
  });
  Network model = network(1);
  TypeParam optimiser(model);
  for (const double rate : {0.1, 0.0, 0.01}) {
    optimiser.set_learning_rate(rate);
    const Network before = model;
    std::tie(model, optimiser) = step(model, optimiser);
    if (rate == 0) expect_same_bits(model.heads.at("a"), before.heads.at("a"));
  }
  EXPECT_EQ(step.trace_count(), 1);
}

TYPED_TEST(EveryOptimiser, MembersHaveAName) {
  TypeParam optimiser(network(1));
  EXPECT_EQ(TypeParam::member_names().size(), std::tuple_size_v<decltype(optimiser.members())>);
}

TEST(OptimisersTest, CheckpointsNameTheStateOfEachParameter) {
  const Layer layer{zeros({2}), zeros({3})};
  const auto paths = [](const auto& optimiser) { return join(tree_paths(optimiser)); };
  EXPECT_EQ(paths(Sgd(layer)), "step, learning_rate");
  EXPECT_EQ(paths(Sgd(layer, {.momentum = 0.9})),
            "step, learning_rate, velocity.weight, velocity.bias");
  EXPECT_EQ(paths(AdamW(layer)),
            "step, learning_rate, first_moment.weight, first_moment.bias, second_moment.weight, "
            "second_moment.bias");
  EXPECT_EQ(paths(RmsProp(layer, {.centered = true})),
            "step, learning_rate, mean_of_squares.weight, mean_of_squares.bias, mean.weight, "
            "mean.bias");
  EXPECT_EQ(paths(Adagrad(layer)),
            "step, learning_rate, sum_of_squares.weight, sum_of_squares.bias");
  EXPECT_EQ(paths(Lion(layer)), "step, learning_rate, momentum.weight, momentum.bias");
  EXPECT_EQ(paths(Ema(layer)), "step, average.weight, average.bias");
}

TEST(OptimisersTest, ErrorsNameTheLeavesWhoseStructureDiffers) {
  Network model = network(1);
  Sgd sgd(model, {.momentum = 0.9});
  Network gradient = network(1);
  gradient.layers[1].push_back({});
  gradient.heads = {{"a", ones({3})}, {"c", ones({1})}};
  gradient.extra.reset();
  gradient.layers[2][0].weight = Tensor();
  gradient.is_deep = false;
  EXPECT_EQ(message_of<StructureError>([&] {
              sgd.update(model, gradient);
              return 0;
            }),
            "Sgd: the gradient has another structure than the parameters\n"
            "  layers.1: of size 0, in the gradient of size 1\n"
            "  layers.2.0.weight: f32[dim=2], in the gradient an empty Tensor\n"
            "  heads: key b, in the gradient key c\n"
            "  extra: of size 1, in the gradient of size 0\n"
            "  is_deep: 1, in the gradient 0");
  Network other = network(1);
  other.layers.pop_back();
  EXPECT_EQ(message_of<StructureError>([&] {
              sgd.update(other, other);
              return 0;
            }),
            "Sgd: the parameters have another structure than those that it was made for\n"
            "  layers: of size 2, when it was made of size 3");
  EXPECT_EQ(sgd.step().item<std::int64_t>(), 0);
}

TEST(OptimisersTest, ErrorsNameTheMomentsThatDiffer) {
  Layer layer{zeros({2}), zeros({3})};
  RmsProp rmsprop(layer);
  layer.bias = zeros({3}, f64);
  EXPECT_EQ(message_of<DTypeError>([&] {
              rmsprop.update(layer, {zeros({2}), zeros({3}, i32)});
              return 0;
            }),
            "RmsProp: types differ from those of the parameters\n"
            "  bias: f64[3], its gradient i32[3]\n"
            "  bias: f64[3], its mean of squares f32[3]");
}

TEST(OptimisersTest, OptionsOutOfRangeAreRefused) {
  const Tensor p = ones({2});
  EXPECT_EQ(message_of<ArgumentError>([&] { return Sgd(p, {.momentum = 1}); }),
            "Sgd: momentum must be in [0, 1), got 1");
  EXPECT_EQ(message_of<ArgumentError>([&] { return Sgd(p, {.nesterov = true}); }),
            "Sgd: nesterov needs momentum, which is 0");
  EXPECT_EQ(message_of<ArgumentError>([&] { return Sgd(p, {.learning_rate = INFINITY}); }),
            "Sgd: learning_rate must be a number that is not negative, got inf");
  EXPECT_EQ(message_of<ArgumentError>([&] { return AdamW(p, {.weight_decay = -1}); }),
            "AdamW: weight_decay must be a number that is not negative, got -1");
  EXPECT_EQ(message_of<ArgumentError>([&] { return RmsProp(p, {.decay = NAN}); }),
            "RmsProp: decay must be in [0, 1), got nan");
  EXPECT_EQ(message_of<ArgumentError>([&] { return RmsProp(p, {.epsilon = -1}); }),
            "RmsProp: epsilon must be positive, got -1");
  EXPECT_EQ(message_of<ArgumentError>([&] { return Sgd(p, {.weight_decay = -1}); }),
            "Sgd: weight_decay must be a number that is not negative, got -1");
  EXPECT_EQ(message_of<ArgumentError>([&] { return Adagrad(p, {.initial_sum = -1}); }),
            "Adagrad: initial_sum must be a number that is not negative, got -1");
  EXPECT_EQ(message_of<ArgumentError>([&] { return Adagrad(p, {.epsilon = 0}); }),
            "Adagrad: epsilon must be positive, got 0");
  EXPECT_EQ(message_of<ArgumentError>([&] { return Lion(p, {.beta2 = 1}); }),
            "Lion: beta2 must be in [0, 1), got 1");
  Sgd sgd(p);
  EXPECT_EQ(message_of<DTypeError>([&] {
              sgd.set_learning_rate(scalar(0.1f));
              return 0;
            }),
            "Sgd: a learning rate is an f64 scalar, got f32[]; cast it");
  EXPECT_EQ(message_of<ShapeError>([&] {
              sgd.set_learning_rate(zeros({1}, f64));
              return 0;
            }),
            "Sgd: a learning rate is an f64 scalar, got f64[1]");
}

}  // namespace
}  // namespace reel
