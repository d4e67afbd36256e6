#include "reel/frontend/losses/losses.h"

#include <limits>

#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

const double kLog2 = std::log(2.0);
const double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(CrossEntropyTest, IsTheMeanOfMinusLogSoftmaxAtTheTarget) {
  const Dim batch("batch", 2), classes("classes", 3);
  const Tensor logits = tensor({{1.0, 2.0, 3.0}, {0.0, 0.0, 0.0}}, {batch, classes}, f64);
  const double first = std::log(std::exp(1.0) + std::exp(2.0) + std::exp(3.0)) - 2,
               second = std::log(3.0);
  const Tensor loss = cross_entropy(logits, tensor({1, 0}, {batch}), classes);
  EXPECT_EQ(loss.type(), TensorType(f64));
  expect_values(loss, {(first + second) / 2}, 1e-12);
}

TEST(CrossEntropyTest, TakesPlainDimsAndAnyAxisForTheClasses) {
  const Tensor logits = tensor({{1.0, 2.0, 3.0}, {0.0, 5.0, 0.0}});
  const Tensor targets = tensor({2, 1});
  const Dim batch("batch", 2), classes("classes", 3);
  const Tensor expected =
      cross_entropy(reshape(logits, Dims{batch, classes}), reshape(targets, Dims{batch}), classes);
  expect_all_close(cross_entropy(logits, targets, 1), expected, 1e-6);
  expect_all_close(cross_entropy(logits, targets, -1), expected, 1e-6);
  expect_all_close(cross_entropy(transpose(logits, {1, 0}), targets, 0), expected, 1e-6);
  expect_values(cross_entropy(zeros({2}), scalar(1), 0), {kLog2}, 1e-6);
}

TEST(CrossEntropyTest, TargetsMayHaveTheirDimsInAnotherOrder) {
  const Dim batch("batch", 2), time("time", 3), classes("classes", 4);
  manual_seed(1);
  const Tensor logits = random_normal({batch, time, classes});
  const Tensor targets = tensor({0, 1, 2, 3, 0, 1}, {batch, time});
  expect_all_close(cross_entropy(logits, transpose(targets, {time, batch}), classes),
                   cross_entropy(logits, targets, classes), 1e-6);
  expect_all_close(
      cross_entropy(transpose(logits, {classes, time, batch}), cast(targets, i64), classes),
      cross_entropy(logits, targets, classes), 1e-6);
}

TEST(CrossEntropyTest, PaddingDoesNotCountAndHasNoGradient) {
  const Dim batch("batch", 2), classes("classes", 2), time("time", tensor({2, 1}, {batch}));
  const Tensor logits =
      tensor({0.0, 0.0, 0.0, 0.0, 0.0, 0.0, NAN, INFINITY}, {batch, time, classes});
  const Tensor targets =
      tensor({0, 1, 1, 1000}, {batch, time});  // an index in padding is never used
  const auto loss = [&](const Tensor& x) -> Tensor { return cross_entropy(x, targets, classes); };
  const auto [value, gradient] = value_and_grad(loss)(logits);
  expect_values(value, {kLog2}, 1e-6);
  expect_values(gradient, {-0.5 / 3, 0.5 / 3, 0.5 / 3, -0.5 / 3, 0.5 / 3, -0.5 / 3, 0, 0}, 1e-6);
  const auto [traced_value, traced_gradient] = jit(value_and_grad(loss))(logits);
  expect_all_close(traced_value, value, 1e-6);
  expect_all_close(traced_gradient, gradient, 1e-6);
}

TEST(CrossEntropyTest, IsStableForLargeLogits) {
  const Tensor logits = tensor({{1000.0, 0.0}, {-1000.0, 0.0}, {30.0, 0.0}});
  const auto loss = [](const Tensor& x) -> Tensor {
    return cross_entropy(x, tensor({0, 0, 0}), 1) * 3;
  };
  const auto [value, gradient] = value_and_grad(loss)(logits);
  expect_values(value, {1000}, 1e-6);
  expect_values(gradient, {0, 0, -1, 1, 0, 0}, 1e-6);
  expect_values(cross_entropy(tensor({{20.0, 0.0}}), tensor({0}), 1), {std::log1p(std::exp(-20.0))},
                1e-12);
}

TEST(CrossEntropyTest, OverNothingIsZero) {
  expect_values(cross_entropy(zeros({0, 3}), zeros({0}, i32), 1), {0});
}

TEST(CrossEntropyTest, GradientIsSoftmaxMinusOneHot) {
  const Dim batch("batch", 4), classes("classes", 5);
  manual_seed(2);
  const Tensor logits = random_normal({batch, classes}, f64),
               targets = tensor({4, 0, 2, 2}, {batch});
  const Tensor gradient =
      grad([&](const Tensor& x) -> Tensor { return cross_entropy(x, targets, classes); })(logits);
  expect_all_close(gradient, (softmax(logits, classes) - one_hot(targets, classes, f64)) / 4,
                   1e-12);
}

TEST(CrossEntropyTest, ErrorsNameBothTypes) {
  const Dim batch("batch", 2), other("other", 2), classes("classes", 3);
  const Tensor logits = zeros({batch, classes});
  EXPECT_EQ(message_of<DTypeError>(
                [&] { return cross_entropy(cast(logits, i32), zeros({batch}, i32), classes); }),
            "cross_entropy: logits must be f32 or f64, got i32[batch=2,classes=3]; cast them");
  EXPECT_EQ(message_of<DTypeError>([&] {
              return cross_entropy(logits, zeros({batch, classes}, f64), classes);
            }),
            "cross_entropy: targets must be i32 or i64, the positions of the right classes, or "
            "probabilities of logits' dtype: logits f32[batch=2,classes=3], targets "
            "f64[batch=2,classes=3]");
  EXPECT_EQ(message_of<ShapeError>([&] { return cross_entropy(logits, zeros({batch}), classes); }),
            "cross_entropy: targets must have the dims of logits where they are probabilities: "
            "f32[batch=2,classes=3], targets f32[batch=2]; numbers of classes are integers: "
            "cast(targets, i32)");
  EXPECT_EQ(message_of<ArgumentError>([&] {
              return cross_entropy(logits, zeros({batch}, i32), classes, {.label_smoothing = 2});
            }),
            "cross_entropy: label_smoothing must be in [0, 1], got 2");
  EXPECT_EQ(
      message_of<ShapeError>([&] { return cross_entropy(logits, zeros({other}, i32), classes); }),
      "cross_entropy: targets must have the dims of logits but the classes, [batch=2]: logits "
      "f32[batch=2,classes=3], classes classes=3, targets i32[other=2]");
  EXPECT_EQ(message_of<ShapeError>([&] {
              return cross_entropy(zeros({2, 3}), zeros({3}, i32), 1);
            }),
            "cross_entropy: targets must have the dims of logits but the classes, [2]: logits "
            "f32[2,3], classes 3, "
            "targets i32[3]");
}

TEST(CrossEntropyTest, ATargetThatIsNoClassIsAnError) {
  const Dim batch("batch", 2), classes("classes", 3);
  for (const int wrong : {-1, 3, -3, -100}) {
    EXPECT_THROW(cross_entropy(zeros({batch, classes}), tensor({0, wrong}, {batch}), classes),
                 IndexError);
    EXPECT_THROW(cross_entropy(zeros({2, 3}), tensor({wrong, 0}), 1), IndexError);
  }
  EXPECT_EQ(message_of<IndexError>([&] {
              cross_entropy(zeros({batch, classes}), tensor({0, -1}, {batch}), classes);
            }),
            "cross_entropy: index -1 at [1] of i32[batch=2] is out of range for axis "
            "classes=3 of f32[batch=2,classes=3], which has size 3");
  EXPECT_EQ(
      message_of<IndexError>([&] {
        cross_entropy(zeros({3, 2, 2}), tensor({{0, 2}, {3, 0}}), 0);
      }),
      "cross_entropy: index 3 at [1,0] of i32[2,2] is out of range for axis 2 of f32[2,2,3], which "
      "has size 3");
}

class LossesTest : public InEveryMode {
 protected:
  const Dim batch{"batch", 2}, classes{"classes", 3}, time{"time", tensor({2, 1}, {batch})};
};
REEL_IN_EVERY_MODE(LossesTest);

TEST_P(LossesTest, SoftTargetsAreProbabilities) {
  const auto f =
      run([&](const Tensor& x, const Tensor& q) { return cross_entropy(x, q, classes); });
  const Tensor logits = tensor({{1.0, 2.0, 3.0}, {0.0, 1.0, 0.0}}, {batch, classes}, f64);
  const Tensor q = tensor({{0.5, 0.25, 0.25}, {0.0, 1.0, 0.0}}, {batch, classes}, f64);
  const double first = std::log(std::exp(1.0) + std::exp(2.0) + std::exp(3.0)),
               second = std::log(2 + std::exp(1.0));
  expect_values(f(logits, q), {(first - 0.5 - 0.5 - 0.75 + second - 1) / 2}, 1e-14);
  expect_all_close(f(logits, transpose(q, {classes, batch})), f(logits, q), 1e-14);
  expect_all_close(f(logits, one_hot(tensor({2, 0}, {batch}), classes, f64)),
                   cross_entropy(logits, tensor({2, 0}, {batch}), classes), 1e-14);
  const auto plain = run([](const Tensor& x, const Tensor& q) { return cross_entropy(x, q, 1); });
  expect_all_close(plain(reshape(logits, {2, 3}), reshape(q, {2, 3})), f(logits, q), 1e-14);
}

TEST_P(LossesTest, ClassesOfProbabilityZeroDoNotCount) {
  const Tensor logits = tensor({1.0, -kInf, 1.0}, {classes}, f64);
  const auto f = run(value_and_grad([&](const std::pair<Tensor, Tensor>& xq) -> Tensor {
    return cross_entropy(xq.first, xq.second, classes);
  }));
  const auto [value, gradient] = f(std::pair{logits, tensor({0.5, 0.0, 0.5}, {classes}, f64)});
  expect_values(value, {kLog2}, 1e-14);
  expect_values(gradient.first, {0, 0, 0}, 1e-14);
  expect_values(gradient.second, {kLog2, 0, kLog2}, 1e-14);
}

TEST_P(LossesTest, LabelSmoothingSpreadsTheTarget) {
  const Tensor logits = tensor({{1.0, 2.0, 3.0}, {0.0, 1.0, 0.0}}, {batch, classes}, f64);
  const Tensor targets = tensor({0, 1}, {batch});
  const auto smooth = [&](const Tensor& targets) {
    return run([&](const Tensor& x) -> Tensor {
      return cross_entropy(x, targets, classes, {.label_smoothing = 0.3});
    })(logits);
  };
  const Tensor q = tensor({{0.8, 0.1, 0.1}, {0.1, 0.8, 0.1}}, {batch, classes}, f64);
  const Tensor expected = cross_entropy(logits, q, classes);
  expect_all_close(smooth(targets), expected, 1e-14);
  expect_all_close(smooth(one_hot(targets, classes, f64)), expected, 1e-14);
}

TEST_P(LossesTest, EveryLossIgnoresPaddingAndHasTheRightGradient) {
  manual_seed(3);
  const Tensor x = random_normal({batch, time, classes}, f64);
  const Tensor q = softmax(random_normal({batch, time, classes}, f64), classes);
  const Tensor positions = tensor({2, 0, 1, 77}, {batch, time});
  const auto spoilt = [&](const Tensor& x) { return where(mask(time), x, scalar(kNan, f64)); };
  const auto check = [&](const auto& loss) {
    const auto both = run(value_and_grad(loss));
    const auto [value, gradient] = both(std::pair{x, q});
    expect_gradient_of(loss, std::pair{x, q}, gradient);
    const auto [spoilt_value, spoilt_gradient] = both(std::pair{spoilt(x), spoilt(q)});
    expect_same_bits(spoilt_value, value);
    expect_same_bits(spoilt_gradient.first, gradient.first);
    expect_same_bits(spoilt_gradient.second, gradient.second);
  };
  using Pair = std::pair<Tensor, Tensor>;
  check([&](const Pair& xq) -> Tensor { return cross_entropy(xq.first, xq.second, classes); });
  check([&](const Pair& xq) -> Tensor {
    return cross_entropy(xq.first, positions, classes, {.label_smoothing = 0.1}) +
           0.0 * sum(xq.second);
  });
  check([&](const Pair& xq) -> Tensor { return binary_cross_entropy(xq.first, xq.second); });
  check([&](const Pair& xq) -> Tensor { return mean_squared_error(xq.first, xq.second); });
}

TEST_P(LossesTest, MeanSquaredErrorInAnyOrderOfDims) {
  const Tensor x = tensor({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}}, {batch, classes});
  const auto f = run([](const Tensor& x, const Tensor& y) { return mean_squared_error(x, y); });
  expect_values(f(x, zeros({batch, classes})), {91.0 / 6}, 1e-6);
  expect_values(f(x, transpose(x, {classes, batch})), {0});
  expect_values(f(zeros({0, 3}), zeros({0, 3})), {0});
}

TEST_P(LossesTest, BinaryCrossEntropyIsAccurateEverywhere) {
  const Dim n("n", 1);
  const auto f = run(value_and_grad(
      [](const Tensor& x, const Tensor& t) -> Tensor { return binary_cross_entropy(x, t); }));
  const auto expect = [&](DType dtype, double x, double t, double value, double gradient,
                          double tolerance) {
    const auto [actual, slope] = f(full({n}, x, dtype), full({n}, t, dtype));
    EXPECT_NEAR(values_of(actual)[0], value, tolerance * value) << x << ' ' << t;
    EXPECT_NEAR(values_of(slope)[0], gradient, tolerance) << x << ' ' << t;
  };
  for (const auto& [dtype, tolerance] : {std::pair{f32, 1e-6}, {f64, 1e-14}}) {
    expect(dtype, 0, 1, kLog2, -0.5, tolerance);
    expect(dtype, 0, 0.25, kLog2, 0.25, tolerance);
    expect(dtype, 12, 1, std::log1p(std::exp(-12.0)), -1 / (1 + std::exp(12.0)), 4 * tolerance);
    expect(dtype, -1000, 0, 0, 0, 0);
    expect(dtype, 1000, 1, 0, 0, 0);
    expect(dtype, 1000, 0, 1000, 1, tolerance);
    expect(dtype, -3, 1, std::log1p(std::exp(3.0)), -1 / (1 + std::exp(-3.0)), 2 * tolerance);
    // If 1 + exp(-|x|) is rounded, the value is still accurate in all digits.
    for (const double x : {-20.0, -12.0, -8.0}) {
      const Tensor value = binary_cross_entropy(full({n}, x, dtype), zeros({n}, dtype));
      const double exact = std::log1p(std::exp(x));
      EXPECT_NEAR(values_of(value)[0], exact, 4 * tolerance * exact) << x;
    }
  }
  expect_all_close(binary_cross_entropy(tensor({2.0, -1.0}), tensor({true, false})),
                   binary_cross_entropy(tensor({2.0, -1.0}), tensor({1.0, 0.0})), 0);
}

TEST_P(LossesTest, BinaryCrossEntropyOfInfiniteLogits) {
  const auto f = run([&](const Tensor& x, const Tensor& t) {
    return value_and_grad([&](const Tensor& x) { return binary_cross_entropy(x, t); })(x);
  });
  for (const DType dtype : {f32, f64}) {
    const auto right = f(tensor({kInf, -kInf, 0.0}, {3}, dtype), tensor({1., 0., 1.}, {3}, dtype));
    expect_values(right.first, {kLog2 / 3}, 1e-6);
    expect_values(right.second, {0, 0, -0.5 / 3}, 1e-6);
    const auto wrong = f(tensor({kInf, -kInf, kInf}, {3}, dtype), tensor({0., 1., .5}, {3}, dtype));
    expect_values(wrong.first, {kInf});
    expect_values(wrong.second, {1. / 3, -1. / 3, .5 / 3}, 1e-6);
  }
  EXPECT_TRUE(std::isnan(values_of(f(tensor({kNan}), tensor({1.})).first)[0]));
}

/// Expects zeros without a sign.
void expect_zeros_without_sign(const Tensor& x) {
  for (const double value : values_of(x)) {
    EXPECT_EQ(value, 0);
    EXPECT_FALSE(std::signbit(value));
  }
}

TEST_P(LossesTest, ZeroHasNoSign) {
  const auto check = [&](const auto& loss, const Tensor& x) {
    const auto [value, gradient] = run(value_and_grad(loss))(x);
    expect_zeros_without_sign(value);
    expect_zeros_without_sign(gradient);
  };
  const Dim none("none", 0), all_empty("ended", tensor({0, 0}, {batch})), labels("labels", 2);
  const Dim frames("frames", 2);
  for (const double smoothing : {0., 0.1})
    for (const Dim& dim : {none, all_empty}) {
      Dims dims{batch, dim, classes};
      const Tensor targets = zeros({batch, dim}, i32);
      check(
          [&](const Tensor& x) -> Tensor {
            return cross_entropy(x, targets, classes, {.label_smoothing = smoothing});
          },
          zeros(dims));
    }
  check([&](const Tensor& x) -> Tensor { return cross_entropy(x, zeros({none}, i32), classes); },
        zeros({none, classes}));
  check(
      [&](const Tensor& x) -> Tensor {
        return ctc_loss(x, zeros({none, labels}, i32),
                        {.time = frames, .label_time = labels, .vocab = classes});
      },
      zeros({none, frames, classes}));
  check([&](const Tensor& x) -> Tensor { return binary_cross_entropy(x, zeros({none})); },
        zeros({none}));
  check([&](const Tensor& x) -> Tensor { return mean_squared_error(x, zeros({none})); },
        zeros({none}));
  // A certain prediction has loss 0, too.
  expect_zeros_without_sign(cross_entropy(tensor({0.0, -kInf}), scalar(0), 0));
}

TEST_P(LossesTest, BinaryCrossEntropyHasSecondDerivativesAtZero) {
  const auto loss = [](const Tensor& x) -> Tensor {
    return binary_cross_entropy(x, zeros_like(x));
  };
  const auto slope = [&](const Tensor& x) -> Tensor { return sum(grad(loss)(x)); };
  expect_values(run(grad(slope))(tensor({0.0}, {}, f64)), {0.25}, 1e-14);
}

TEST(LossErrorsTest, NameBothTypes) {
  const Dim batch("batch", 2), other("other", 2);
  const Tensor x = zeros({batch});
  EXPECT_EQ(message_of<ShapeError>([&] {
              return mean_squared_error(zeros({2, 1}), zeros({2}));
            }),
            "mean_squared_error: targets must have the dims of predictions: f32[2,1], targets "
            "f32[2]");
  EXPECT_EQ(message_of<DTypeError>([&] { return mean_squared_error(x, zeros({batch}, f64)); }),
            "mean_squared_error: dtypes differ: predictions f32[batch=2], targets f64[batch=2]; "
            "cast one of them");
  EXPECT_EQ(message_of<DTypeError>([&] { return mean_squared_error(cast(x, i32), cast(x, i32)); }),
            "mean_squared_error: predictions must be f32 or f64, got i32[batch=2]; cast them");
  EXPECT_EQ(message_of<ShapeError>([&] { return binary_cross_entropy(x, zeros({other})); }),
            "binary_cross_entropy: targets must have the dims of logits: f32[batch=2], targets "
            "f32[other=2]");
  EXPECT_EQ(message_of<DTypeError>([&] { return binary_cross_entropy(x, zeros({batch}, i32)); }),
            "binary_cross_entropy: targets must be booleans, or probabilities of logits' dtype: "
            "logits f32[batch=2], targets i32[batch=2]");
}

}  // namespace
}  // namespace reel
