#include "reel/frontend/optimisers/adam.h"

#include "reel/core/ops.h"
#include "reel/frontend/jit.h"
#include "reel/frontend/transforms/grad.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

struct Model {
  Tensor weight, bias;
};
struct Mixed {
  Tensor weight, count, flag;
  Dim dim;
  int layers = 2;
};

/// Algorithm 1 of the paper for one number.
struct Reference {
  double rate, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double m = 0, v = 0;
  int t = 0;
  double step(double p, double g) {
    ++t;
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    const double m_hat = m / (1 - std::pow(beta1, t)), v_hat = v / (1 - std::pow(beta2, t));
    return p - rate * m_hat / (std::sqrt(v_hat) + epsilon);
  }
};

TEST(AdamTest, FollowsThePapersAlgorithm) {
  Tensor p = tensor({1.0, -2.0, 0.5}, {}, f64);
  const std::vector<Tensor> gradients{tensor({0.1, -3.0, 0.0}, {}, f64),
                                      tensor({0.2, 5.0, 0.0}, {}, f64),
                                      tensor({-4.0, 1e-9, 0.0}, {}, f64)};
  Adam adam(p, {.learning_rate = 0.05});
  std::vector<Reference> expected(3, Reference{0.05});
  std::vector<double> values = values_of(p);
  for (const Tensor& gradient : gradients) {
    adam.update(p, gradient);
    for (int i = 0; i < 3; ++i) values[i] = expected[i].step(values[i], values_of(gradient)[i]);
    expect_values(p, values, 1e-12);
  }
  EXPECT_EQ(adam.step().item<std::int64_t>(), 3);
}

TEST(AdamTest, TakesBetasAndEpsilon) {
  Tensor p = tensor({1.0}, {}, f64);
  Adam adam(p, {.learning_rate = 0.1, .beta1 = 0.0, .beta2 = 0.5, .epsilon = 1.0});
  Reference expected{0.1, 0.0, 0.5, 1.0};
  double value = 1;
  for (const double g : {2.0, -1.0, 0.25}) {
    adam.update(p, tensor({g}, {}, f64));
    value = expected.step(value, g);
    expect_values(p, {value}, 1e-12);
  }
}

TEST(AdamTest, WorksInSinglePrecisionWithTheSameScalars) {
  Tensor p = tensor({1.0, 2.0});
  Adam adam(p, {.learning_rate = 0.01f});
  Reference first{0.01}, second{0.01};
  double a = 1, b = 2;
  for (int i = 0; i < 50; ++i) {
    adam.update(p, tensor({0.5, -0.25}));
    a = first.step(a, 0.5);
    b = second.step(b, -0.25);
  }
  EXPECT_EQ(p.dtype(), f32);
  expect_values(p, {a, b}, 1e-5);
}

TEST(AdamTest, UpdatesFloatingTensorsOnly) {
  const Dim dim("dim", 2);
  Mixed model{ones({dim}), tensor({3, 4}, {dim}), tensor({true, false}, {dim}), dim};
  const Mixed gradient{ones({dim}), zeros({dim}, i32), zeros({dim}, boolean), dim};
  Adam adam(model, {.learning_rate = 0.5});
  adam.update(model, gradient);
  expect_values(model.weight, {0.5, 0.5}, 1e-6);
  expect_values(model.count, {3, 4});
  expect_values(model.flag, {1, 0});
  EXPECT_TRUE(model.dim == dim && model.layers == 2 && model.weight.dims() == Dims{dim});
}

TEST(AdamTest, AWholeTrainingStepIsTracedOnce) {
  const auto loss = [](const Model& m, const Tensor& x, const Tensor& y) -> Tensor {
    return mean(square(matmul(x, m.weight) + m.bias - y));
  };
  const auto step = [&](Model m, Adam<Model> adam, const Tensor& x, const Tensor& y) {
    auto [value, gradient] = value_and_grad(loss)(m, x, y);
    adam.update(m, gradient);
    return std::tuple{m, adam, value};
  };
  manual_seed(1);
  const Tensor x = random_normal({16, 2}), y = matmul(x, tensor({{1.0}, {-2.0}})) + 0.5;
  const Model start{zeros({2, 1}), zeros({1})};

  Model eager_model = start, traced_model = start;
  Adam eager_adam(start, {.learning_rate = 0.1f}), traced_adam(start, {.learning_rate = 0.1f});
  auto traced = jit(step);
  float value = 0;
  for (int i = 0; i < 100; ++i) {
    if (i == 50) {
      eager_adam.set_learning_rate(0.01);
      traced_adam.set_learning_rate(0.01);
    }
    auto [em, ea, ev] = step(eager_model, eager_adam, x, y);
    auto [tm, ta, tv] = traced(std::move(traced_model), std::move(traced_adam), x, y);
    eager_model = em;
    eager_adam = ea;
    traced_model = tm;
    traced_adam = ta;
    value = tv.item<float>();
    ASSERT_NEAR(value, ev.item<float>(), 1e-5);
  }
  EXPECT_EQ(traced.trace_count(), 1);
  EXPECT_EQ(traced_adam.step().item<std::int64_t>(), 100);
  EXPECT_LT(value, 0.01f);
  expect_all_close(traced_model.weight, eager_model.weight, 1e-5);
}

TEST(AdamTest, OtherBetasAreTracedAgain) {
  auto step = jit([](Tensor p, Adam<Tensor> adam) {
    adam.update(p, ones_like(p));
    return std::pair{p, adam};
  });
  const Tensor p = ones({2}, f64);
  step(p, Adam(p, {.learning_rate = 0.1}));
  step(p, Adam(p, {.learning_rate = 0.2}));
  EXPECT_EQ(step.trace_count(), 1);
  step(p, Adam(p, {.learning_rate = 0.1, .beta1 = 0.5}));
  EXPECT_EQ(step.trace_count(), 2);
  step(p, Adam(p, {.learning_rate = 0.1, .beta1 = 0.5 + 1e-12}));
  EXPECT_EQ(step.trace_count(), 3);
}

TEST(AdamTest, CopiesAreIndependent) {
  Tensor p = ones({2}), q = p;
  Adam adam(p), copy = adam;
  adam.update(p, ones({2}));
  EXPECT_EQ(adam.step().item<std::int64_t>(), 1);
  EXPECT_EQ(copy.step().item<std::int64_t>(), 0);
  copy.update(q, ones({2}));
  expect_same_bits(p, q);
}

TEST(AdamTest, ErrorsListEveryParameterThatDiffers) {
  Model model{zeros({2, 1}), zeros({3})};
  Adam adam(model);
  EXPECT_EQ(message_of<ShapeError>([&] {
              adam.update(model, {zeros({2}), zeros({3, 1})});
              return 0;
            }),
            "Adam: types differ from those of the parameters\n"
            "  weight: f32[2,1], its gradient f32[2]\n"
            "  bias: f32[3], its gradient f32[3,1]");
  EXPECT_EQ(message_of<DTypeError>([&] {
              adam.update(model, {zeros({2, 1}), zeros({3}, f64)});
              return 0;
            }),
            "Adam: types differ from those of the parameters\n"
            "  bias: f32[3], its gradient f64[3]");
  expect_values(model.bias, {0, 0, 0});
  EXPECT_EQ(adam.step().item<std::int64_t>(), 0);

  std::vector<Tensor> layers{zeros({2})};
  Adam of_layers(layers);
  EXPECT_EQ(message_of<StructureError>([&] {
              of_layers.update(layers, {zeros({2}), zeros({2})});
              return 0;
            }),
            "Adam: the gradient has another structure than the parameters\n"
            "  the tree: of size 1, in the gradient of size 2");
}

TEST(AdamTest, OptionsOutOfRangeAreRefused) {
  const Tensor p = ones({2});
  EXPECT_EQ(message_of<ArgumentError>([&] { return Adam(p, {.beta1 = 1}); }),
            "Adam: beta1 must be in [0, 1), got 1");
  EXPECT_EQ(message_of<ArgumentError>([&] { return Adam(p, {.beta2 = -0.5}); }),
            "Adam: beta2 must be in [0, 1), got -0.5");
  EXPECT_EQ(message_of<ArgumentError>([&] { return Adam(p, {.epsilon = 0}); }),
            "Adam: epsilon must be positive, got 0");
  EXPECT_EQ(message_of<ArgumentError>([&] { return Adam(p, {.learning_rate = -1}); }),
            "Adam: learning_rate must be a number that is not negative, got -1");
}

}  // namespace
}  // namespace reel
