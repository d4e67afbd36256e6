// checkpoint_name: the same values, with a name that a policy can look for.
#include <gtest/gtest.h>

#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

using CheckpointNameTest = InEveryMode;
REEL_IN_EVERY_MODE(CheckpointNameTest);

TEST_P(CheckpointNameTest, IsAnIdentityOfValuesAndGradients) {
  const auto named = [](const Tensor& x) { return sum(square(checkpoint_name(tanh(x), "h"))); };
  const auto plain = [](const Tensor& x) { return sum(square(tanh(x))); };
  const Tensor x = tensor({0.5, -1.25, 2.}, {}, f64);
  const auto [value, gradient] = run(value_and_grad(named))(x);
  const auto [expected, slope] = value_and_grad(plain)(x);
  expect_all_close(value, expected, 1e-14);
  expect_all_close(gradient, slope, 1e-14);
  const auto second = [](const auto& f) {
    return grad([f](const Tensor& x) { return sum(sin(grad(f)(x))); });
  };
  expect_all_close(run(second(named))(x), second(plain)(x), 1e-13);
}

TEST(CheckpointNameGraphTest, TheNameIsInTheGraph) {
  const auto f = jit([](const Tensor& x) { return exp(checkpoint_name(x * 2., "gates")); });
  f(scalar(1.));
  EXPECT_NE(str(f.graph()).find("gates"), std::string::npos) << f.graph();
}

}  // namespace
}  // namespace reel
