// scan with truncate: gradients that are cut between pieces of the steps.
#include <gtest/gtest.h>

#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

class TruncateTest : public InEveryMode {};

TEST_P(TruncateTest, PiecesHaveTheGradientsThatTheyHaveAlone) {
  manual_seed(3);
  const Tensor w = random_normal({3, 3}, f64) * 0.5, x = random_normal({7, 2, 3}, f64);
  for (const bool reverse : {false, true}) {
    const auto f = [&](std::int64_t truncate) {
      return run(value_and_grad([&x, truncate, reverse](const std::pair<Tensor, Tensor>& p) {
        const auto body = [&](const Tensor& x, const Tensor& h) {
          const Tensor next = tanh(x + matmul(h, p.first));
          return std::pair{next, next};
        };
        const auto made = scan(Scan{
            .initial = p.second, .xs = x, .body = body, .reverse = reverse, .truncate = truncate});
        return sum(square(made.ys)) + sum(made.state);
      }));
    };
    const std::pair p{w, ones({2, 3}, f64)};
    const auto full = f(0)(p);
    for (const int steps : {7, 8, 1000}) {
      const auto same = f(steps)(p);
      expect_same_bits(same.first, full.first);
      expect_same_bits(same.second.first, full.second.first);
      expect_same_bits(same.second.second, full.second.second);
    }
    // Piece by piece, the state handed on as a constant.
    const auto pieces = [&](const std::pair<Tensor, Tensor>& p) {
      Tensor h = p.second, total = scalar(0.0, f64);
      for (int k = 0; k < 7; ++k) {
        if (k == 3 || k == 6) h = stop_gradient(h);
        h = tanh(gather(x, scalar(reverse ? 6 - k : k), 0) + matmul(h, p.first));
        total = total + sum(square(h));
      }
      return total + sum(h);
    };
    const auto cut = f(3)(p), expected = value_and_grad(pieces)(p);
    expect_all_close(cut.first, full.first, 1e-12);
    expect_all_close(cut.second.first, expected.second.first, 1e-12);
    expect_all_close(cut.second.second, expected.second.second, 1e-12);
    EXPECT_GT(max(abs(cut.second.first - full.second.first)).item<double>(), 1e-3);
  }
}

TEST_P(TruncateTest, TheStateOfAnEntryThatHasEndedIsNotCut) {
  const Dim batch("batch", 2), time("time", tensor({2, 7}, {batch}));
  const Tensor x = ones({time, batch}, f64);
  const auto f = run(grad([&](const Tensor& initial) {
    const auto body = [](const Tensor& x, const Tensor& h) {
      return std::pair{None{}, h * x * 2.0};
    };
    return sum(
        scan(Scan{.spatial_dim = time, .initial = initial, .xs = x, .body = body, .truncate = 3})
            .state);
  }));
  expect_all_close(f(ones({batch}, f64)), tensor({4.0, 0.0}, {batch}, f64), 1e-12);
}

REEL_IN_EVERY_MODE(TruncateTest);

}  // namespace
}  // namespace reel
