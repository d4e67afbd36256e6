// Reductions in a scan with entries that finish one by one, over tensors with another ragged dim. A
// plan computes their operands outside of the loop, or saves them. The reduction needs the padding
// of masked operands: -inf or 1.
#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

using Reduce = std::function<Tensor(const Tensor&, const Axes&)>;

class FilledPaddingTest : public ::testing::TestWithParam<std::vector<int>> {
 protected:
  const Dim batch{"batch", 3}, time{"time", tensor(GetParam(), {batch})},
      width{"width", tensor({2, 3, 1}, {batch})};
  const Tensor x = mask_padding(sin(1.7 * cumsum(full({batch, width}, 1., f64), width) +
                                    0.9 * cast(range(batch), f64))),
               ticks = mask_padding(cumsum(full({time, batch}, 0.1, f64), time));
  const std::vector<std::pair<std::string, Reduce>> reductions{
      {"logsumexp", [](const Tensor& s, const Axes& axes) { return logsumexp(s, axes); }},
      {"max", [](const Tensor& s, const Axes& axes) { return max(s, axes); }},
      {"min", [](const Tensor& s, const Axes& axes) { return min(-s, axes); }},
      {"prod", [](const Tensor& s, const Axes& axes) { return prod(s, axes); }},
      {"softmax",
       [](const Tensor& s, const Axes& axes) { return sum(s * softmax(s, axes), axes); }},
  };
  const std::vector<Axes> axes{Axes(batch), Axes(width), Axes{batch, width}};

  /// Compares values, gradients and second gradients of plans with eager mode, and eager mode with
  /// differences.
  template <class Body>
  void expect_planned(const Body& body) {
    const auto loss = [&](const Tensor& x) {
      const Tensor y = scan(Scan{.spatial_dim = time,
                                 .initial = 0.3 * x,
                                 .xs = ticks,
                                 .body =
                                     [&](const Tensor& tick, const Tensor& s) {
                                       return std::pair{Tensors{}, body(x, tick, s)};
                                     }})
                           .state;
      return sum(0.5 * y + sin(y));
    };
    const auto slope = [&](const Tensor& x) { return sum(sin(grad(loss)(x))); };
    const Tensor gradient = mask_padding(grad(loss)(x));
    expect_all_close(jit(loss)(x), loss(x), 1e-12);
    expect_all_close(mask_padding(jit(grad(loss))(x)), gradient, 1e-11);
    expect_all_close(mask_padding(jit(grad(slope))(x)), mask_padding(grad(slope)(x)), 1e-10);
    expect_gradient_of(loss, x, gradient, 1e-5);
  }
};

TEST_P(FilledPaddingTest, ReductionsOfTheStateAgreeWithEagerMode) {
  for (const auto& [name, reduce] : reductions)
    for (const Axes& over : axes) {
      SCOPED_TRACE(name);
      expect_planned([&](const Tensor&, const Tensor& tick, const Tensor& s) {
        return 0.9 * s + tick + 0.2 * reduce(s, over);
      });
    }
}

TEST_P(FilledPaddingTest, ReductionsOfACaptureAgreeWithEagerMode) {
  for (const auto& [name, reduce] : reductions)
    for (const Axes& over : axes) {
      SCOPED_TRACE(name);
      expect_planned([&](const Tensor& x, const Tensor& tick, const Tensor& s) {
        return 0.9 * s + tick + 0.2 * reduce(x, over);
      });
    }
}

TEST_P(FilledPaddingTest, ReductionsOfACaptureAndASliceAgreeWithEagerMode) {
  for (const auto& [name, reduce] : reductions)
    for (const Axes& over : axes) {
      SCOPED_TRACE(name);
      expect_planned([&](const Tensor& x, const Tensor& tick, const Tensor& s) {
        return 0.9 * s + 0.2 * reduce(x * tick - 0.3, over);
      });
    }
}

// A masked residual is saved by a loop that runs all entries, as its maximum mixes them; the
// gradient reads it along another dim.
TEST_P(FilledPaddingTest, TwoReductionsOfAValueAgreeWithEagerMode) {
  expect_planned([&](const Tensor&, const Tensor& tick, const Tensor& s) {
    return 0.9 * s + tick + 0.2 * max(logsumexp(s, width) + s, batch);
  });
  expect_planned([&](const Tensor& x, const Tensor& tick, const Tensor& s) {
    return 0.9 * s + 0.2 * prod(softmax(s, width) + x * tick, batch);
  });
}

INSTANTIATE_TEST_SUITE_P(Lengths, FilledPaddingTest,
                         ::testing::Values(std::vector<int>{2, 1, 3}, std::vector<int>{0, 2, 1},
                                           std::vector<int>{3, 3, 1}, std::vector<int>{0, 0, 2}));

}  // namespace
}  // namespace reel
