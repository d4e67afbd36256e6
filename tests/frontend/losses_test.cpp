#include "reel/frontend/losses.h"

#include "reel/core/ops.h"
#include "reel/frontend/grad.h"
#include "reel/frontend/jit.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

const double kLog2 = std::log(2.0);

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
  EXPECT_EQ(message_of<DTypeError>([&] { return cross_entropy(logits, zeros({batch}), classes); }),
            "cross_entropy: targets must be i32 or i64, the positions of the right classes, got "
            "f32[batch=2]");
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
}

}  // namespace
}  // namespace reel
