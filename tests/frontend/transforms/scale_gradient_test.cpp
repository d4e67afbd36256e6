// scale_gradient: the value stays, the gradient is multiplied.
#include "reel/frontend/transforms/scale_gradient.h"

#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

class ScaleGradientTest : public InEveryMode {};
REEL_IN_EVERY_MODE(ScaleGradientTest);

TEST_P(ScaleGradientTest, ValueStaysAndGradientIsMultiplied) {
  const Tensor x = tensor({0.1, -2.0, 3.0}, {3}, f64);
  for (const double factor : {-1., 0., 0.25}) {
    const auto f = run(value_and_grad(
        [=](const Tensor& x) -> Tensor { return sum(square(scale_gradient(x, factor))); }));
    const auto [value, gradient] = f(x);
    expect_same_bits(value, sum(square(x)));
    expect_same_bits(gradient, x * 2 * factor);
  }
}

TEST_P(ScaleGradientTest, FactorMayBeATensorPerRow) {
  const Dim batch("batch", 2), time("time", tensor({3, 1}, {batch}));
  const Tensor x = tensor({1.0, 2.0, 3.0, 4.0, NAN, NAN}, {batch, time}, f64);
  const auto f = run([&](const Tensor& x, const Tensor& factor) {
    return grad([&](const Tensor& x) -> Tensor { return sum(square(scale_gradient(x, factor))); })(
        x);
  });
  expect_values(mask_padding(f(x, tensor({2.0, -1.0}, {batch}, f64))), {4, 8, 12, -8, 0, 0});
}

TEST_P(ScaleGradientTest, SecondDerivativeIsScaledOncePerUse) {
  // The gradient of x³ is f·3x²; its own derivative passes x once more: f·f·6x.
  const auto third = [](const Tensor& x) -> Tensor {
    const Tensor y = scale_gradient(x, 0.5);
    return sum(y * y * y);
  };
  const auto f = run(grad([=](const Tensor& x) -> Tensor { return sum(grad(third)(x)); }));
  expect_values(f(tensor({2.0}, {1}, f64)), {0.25 * 12}, 1e-14);
}

TEST_P(ScaleGradientTest, GradientInALoopIsMultipliedInEachIteration) {
  const auto f = run(grad([](const Tensor& x) -> Tensor {
    return fori_loop(
        0, 3, [](const Tensor&, const Tensor& s) { return scale_gradient(s, 0.5) * 2.; }, x);
  }));
  expect_values(f(scalar(3., f64)), {1});
}

TEST(ScaleGradientErrorsTest, NameTypesThatDoNotFit) {
  EXPECT_EQ(message_of<DTypeError>([] {
              scale_gradient(tensor({1, 2}), 2);
            }),
            "scale_gradient: x must be f32 or f64, got i32[2]");
  EXPECT_EQ(message_of<DTypeError>([] { scale_gradient(zeros({2}), scalar(1., f64)); }),
            "scale_gradient: the factor must have the dtype of x: x f32[2], factor f64[]");
  const std::string text = message_of<ShapeError>([] { scale_gradient(zeros({2}), zeros({3})); });
  EXPECT_EQ(text.rfind("scale_gradient: ", 0), 0u) << text;
}

}  // namespace
}  // namespace reel
