// The gradient of logsumexp is softmax, which sums to 1 even for large values.
#include <cmath>

#include "reel/tests/modes.h"

namespace reel {
namespace {

using LogSumExpTest = InEveryMode;
REEL_IN_EVERY_MODE(LogSumExpTest);

TEST_P(LogSumExpTest, TheGradientAddsUpToOne) {
  const auto f = run(grad([](const Tensor& x) { return logsumexp(x); }));
  for (const double x : {1e8, -1e6, 3e38, 0.3})
    for (const DType dtype : {f32, f64}) expect_values(f(tensor({x, x}, {}, dtype)), {.5, .5});
  expect_values(f(tensor({1e7, 1e7 + 1})), {1 / (1 + M_E), M_E / (1 + M_E)});
}

TEST_P(LogSumExpTest, SeveralAxesAndRaggedOnesAreReduced) {
  const auto far = run(grad([](const Tensor& x) { return sum(logsumexp(x, {0, 2})); }));
  expect_values(sum(far(full({5, 2, 7}, -4e6)), {0, 2}), {1, 1}, 1e-6);
  const Dim batch("batch", 2), time("time", tensor({3, 1}, {batch}));
  const auto ragged =
      run(grad([](const Tensor& x) { return sum(logsumexp(x, x.dim("time")) * 2.); }));
  const Tensor got = ragged(full({batch, time}, 1e8));
  expect_values(mask_padding(got), {2. / 3, 2. / 3, 2. / 3, 2, 0, 0}, 1e-6);
}

TEST_P(LogSumExpTest, RowsOfNothingHaveNoGradient) {
  const auto f = run(grad([](const Tensor& x) { return sum(logsumexp(x, 1) * 3.); }));
  const Tensor x = tensor({{-INFINITY, -INFINITY}, {-INFINITY, 1e6}});
  expect_values(f(x), {0, 0, 0, 3});
  const auto second = run(grad([](const Tensor& x) {
    return sum(square(grad([](const Tensor& y) { return sum(logsumexp(y, 1)); })(x)));
  }));
  expect_values(second(x), {0, 0, 0, 0});
}

TEST_P(LogSumExpTest, SecondGradientsFarFromZero) {
  const auto second = run(grad([](const Tensor& x) {
    return sum(grad([](const Tensor& y) { return logsumexp(y); })(x) * tensor({1., 3.}));
  }));
  expect_values(second(full({2}, 1e7)), {-.5, .5});
}

/// The forward algorithm in the log domain: at each position the state probabilities sum to 1.
TEST_P(LogSumExpTest, PosteriorsOfAMarkovModelAddUpToOne) {
  const std::int64_t steps = 1000;
  const auto f = run(grad([](const Tensor& emissions) {
    const auto body = [](const Tensor& e, const Tensor& alpha) {
      return std::pair{None{}, logsumexp(reshape(alpha, {2, 1}) - 0.7, 0) + e};
    };
    return logsumexp(scan(Scan{.initial = zeros({2}), .xs = emissions, .body = body}).state);
  }));
  const Tensor posteriors = f(full({steps, 2}, -7.3));
  expect_all_close(sum(posteriors, 1), ones({steps}), 1e-4);
}

}  // namespace
}  // namespace reel
